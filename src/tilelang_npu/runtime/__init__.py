"""Takes a decorated function to results: factories, kernels, argument binding, the cache, checks, tuning and reports.

This is the only sub-package that uses both the compiler and the simulator, and the only one that handles the caller's arrays.
"""
