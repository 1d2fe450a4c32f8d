"""The dialects of AscendNPU-IR (hivm, hacc, annotation, memref_ext, scope, dlti) and the package's own (tile), in xDSL.

``context.make_context`` knows them all; ``text`` reads and writes them. Each is imported only where it is used.
"""
