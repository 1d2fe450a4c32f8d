"""Execution of a module: compilation, arguments, execution in program order, in batches, in other orders, and once more."""
