"""Passes on HIVM: the split into cores, memory planning, synchronisation, and the attributes that the toolchain needs."""
