"""Analyses of a program that several passes use: accesses, buffers, cores, bounds, live ranges, channels, dependences.

No analysis changes the program, with one exception: the module ``cores`` also stores the core of an operation as an attribute
of the operation. Passes import these modules, and these modules import no pass.
"""
