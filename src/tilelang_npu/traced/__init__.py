"""The objects that a kernel computes with while it is traced, and the builder that emits operations for them.

The language and the front end are built on this package. Its modules, each of which imports only modules before it: the
author's position in the source (``author``), the active trace and the operators of scalars (``active_trace``), symbolic
dimensions (``symbols``), the source of kernels (``source``), scalar types (``kinds``), linear forms of integers
(``linear_forms``), Python numbers as elements (``numbers``), scalars (``scalars``), the emitter of operations (``emitter``),
conversions (``conversions``) and arithmetic (``arithmetic``) of scalars, buffers (``buffers``), jumps (``jumps``), and the
builder (``builder``). Modules up to ``numbers`` do not import the IR framework, so that declaring a kernel does not load it.
"""
