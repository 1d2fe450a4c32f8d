"""The dialects of AscendNPU-IR (hivm, hfusion, hacc, annotation, memref_ext, scope), tile (the package's own) and MLIR's.

``ir`` has what all dialects share, ``text`` parses and prints modules, and ``context.make_context`` knows all dialects. Each
dialect is imported only where it is used.
"""
