"""The modelled machine: memories, cores and flags, the data path, and the records of executed ops."""
