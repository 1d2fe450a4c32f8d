"""Generation of Python from device functions of HIVM modules, one file per group of ops."""

from tilelang_npu.simulator.codegen import (  # noqa: F401  (they register ops)
    control,
    cube,
    custom,
    floats,
    integers,
    memrefs,
    moves,
    prints,
    stopping,
    sync,
    vector,
    without_effect,
)
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter

__all__ = ["PythonEmitter"]
