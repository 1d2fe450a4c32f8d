"""The lowering from the tile dialect to HIVM."""
