"""``jit`` and ``compile``: the objects that users hold."""
