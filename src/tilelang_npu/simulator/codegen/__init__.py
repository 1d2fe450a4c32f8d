"""Generation of Python code from device functions of HIVM modules, with one file for each group of ops.

A process that runs a program from the cache generates no code. Therefore importing this package imports none of these files;
the first access to ``PythonEmitter`` imports all of them, which registers the emitters of all ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter

__all__ = ["PythonEmitter"]


def __getattr__(name: str) -> type[PythonEmitter]:
    if name != "PythonEmitter":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from tilelang_npu.simulator.codegen import (  # noqa: F401 - importing them registers their ops
        control,
        cube,
        custom,
        floats,
        integers,
        memrefs,
        moves,
        patch_loads,
        scaled_products,
        signal_emitters,
        sync,
        vector,
        vector_functions,
    )
    from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter

    globals()[name] = PythonEmitter
    return PythonEmitter
