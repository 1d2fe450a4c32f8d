"""Generation of Python from device functions of HIVM modules, one file per group of ops."""

from tilelang_npu.simulator.codegen import (  # noqa: F401  (they register ops)
    calls,
    control,
    cube,
    floats,
    memrefs,
    moves,
    prints,
    scalars,
    sync,
    vector,
    without_effect,
)
from tilelang_npu.simulator.codegen.emitter import Emitter

__all__ = ["Emitter"]
