"""Measured times that others published, and the kernels that they are of."""
