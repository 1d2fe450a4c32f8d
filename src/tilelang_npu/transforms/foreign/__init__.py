"""Passes that convert HIVM modules of other tools to the loops, operations and buffers that the passes on HIVM support."""
