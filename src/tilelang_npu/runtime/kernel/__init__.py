"""A kernel that can be called: how it is traced, lowered, stored and run."""
