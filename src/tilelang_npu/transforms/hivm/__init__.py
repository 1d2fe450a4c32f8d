"""Passes on HIVM: the split into cores, memory planning, synchronisation, and what the toolchain wants to know."""
