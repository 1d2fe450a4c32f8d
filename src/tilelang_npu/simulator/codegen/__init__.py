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
)
from tilelang_npu.simulator.codegen.emitter import EFFECT, IGNORED, PURE, Emitter

__all__ = ["EFFECT", "IGNORED", "PURE", "Emitter"]
