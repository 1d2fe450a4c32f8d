"""Passes on the tile dialect, from the traced kernel to one whose memories are known."""
