"""The modelled machine: memories, cores and flags, the data path, and what a run records."""
