"""Checks a kernel's run for hazards and for unwritten results, and compares its results with those of the interpreter."""
