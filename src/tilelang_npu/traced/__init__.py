"""The values of a trace and the builder that emits operations for them: the base of the language and the front end.

From the bottom: the author's place in the source (``author``), the running trace and the operators of its scalars
(``active_trace``), symbolic dimensions (``symbols``), the source of kernels (``source``), scalar types (``kinds``), linear
forms of integers (``linear_forms``), numbers as elements (``numbers``), scalars (``scalars``), the emitter of operations
(``emitter``), conversions and arithmetic of scalars, buffers, jumps, and the builder (``builder``). Modules up to ``numbers``
do not import the IR framework, so that declaring a kernel does not load it.
"""
