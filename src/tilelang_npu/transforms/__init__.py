"""The passes between the tile dialect and planned, synchronised HIVM; ``pipeline`` is their order."""
