"""Checks of a run: hazards, results that are not written, and the comparison with the interpreter."""
