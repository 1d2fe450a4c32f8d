"""The values of a trace, and what emits their operations: what the language and the front end both stand on.

From the bottom: where the author's code stands (``author``), the running trace and the operators of its scalars (``context``),
symbolic dimensions (``symbols``), the source of kernels (``source``), scalar types (``kinds``), what is proven of integers
(``forms``) and numbers of a type (``numbers``), scalars (``scalars``), the place where operations go (``emitter``), conversions
and arithmetic of scalars, buffers, jumps, and the whole builder (``builder``). Up to ``numbers`` nothing needs the IR
framework, so that declaring a kernel does not load it.
"""
