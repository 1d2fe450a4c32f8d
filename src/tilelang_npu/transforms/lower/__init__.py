"""From the tile dialect to HIVM."""
