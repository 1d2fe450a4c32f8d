"""Lowering of the tile dialect to HIVM, by subject: views, copies, compute, launch."""
