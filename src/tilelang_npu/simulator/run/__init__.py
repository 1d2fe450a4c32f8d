"""Execution of a module: its program, its arguments, batched and reordered execution, and replays of blocks."""
