"""From a decorated function to results: factories, kernels, argument binding, the cache, profiling.

The only part that knows both halves, the compiler and the simulator, and the only one that knows the caller's arrays.
"""
