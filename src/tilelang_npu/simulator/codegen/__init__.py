"""Generation of Python from device functions of HIVM modules, one file per group of ops.

Who runs a program from the cache generates nothing, so the files are loaded on demand: with ``PythonEmitter``, all that say how
ops run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter

__all__ = ["PythonEmitter"]


def __getattr__(name: str) -> Any:
    if name != "PythonEmitter":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from tilelang_npu.simulator.codegen import (  # noqa: F401  (they register ops)
        control,
        cube,
        custom,
        floats,
        integers,
        memrefs,
        moves,
        prints,
        sync,
        vector,
        without_effect,
    )
    from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter

    globals()[name] = PythonEmitter
    return PythonEmitter
