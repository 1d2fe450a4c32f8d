"""Binds the arguments of a call to the kernel's parameters, and finds arrays that share memory."""
