"""Published measurements of kernels, and the measured kernels."""
