"""``jit`` and ``compile``, and the objects that they return: factories and callable kernels."""
