"""Which core an operation of a mixed kernel runs on."""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.ir import Operation

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.declaration import DialectOp


def core_of(op: Operation) -> str:
    """``AIC``, ``AIV`` or ``either``: the core that an operation runs on.

    Element accesses in UB, and element stores to GM, are the Vector core's; element reads of GM are whoever needs them.
    """
    if isinstance(op, (memref.LoadOp, memref.StoreOp)):
        reads = isinstance(op, memref.LoadOp)
        space = hivm.space_of(op.operands[0 if reads else 1].type)
        return "AIV" if space == "ub" or (space == "gm" and not reads) else "either"
    return op.core() if isinstance(op, DialectOp) else "either"
