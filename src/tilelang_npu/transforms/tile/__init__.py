"""Passes on the tile dialect: from the traced kernel to a kernel with memories and cores."""
