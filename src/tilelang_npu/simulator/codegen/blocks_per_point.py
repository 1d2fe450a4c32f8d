"""The number of blocks of a Vector function for each block of the launch.

The block dimension of a launch counts AI cores, each a Cube core with its Vector cores. A kernel that runs only on Vector cores
and uses the sub-block index has a block for each of the ``n`` Vector cores of an AI core: block ``b`` is sub-block ``b % n`` of
grid point ``b // n`` (``transforms/lower/launch.py``). Such a function uses its block index only in that remainder and that
quotient.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.arith import IndexCastUIOp

_CASTS = (arith.IndexCastOp, IndexCastUIOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp)
_REMAINDERS = (arith.RemUIOp, arith.RemSIOp)
_QUOTIENTS = (arith.DivUIOp, arith.DivSIOp, arith.FloorDivSIOp)


def blocks_per_point(function: FuncOp, vector_cores: int) -> int:
    """Returns the blocks of the function for each point of the grid: the Vector cores of an AI core, or 1 where the function
    uses its block index in another way."""
    pending: list[SSAValue] = [op.results[0] for op in function.walk() if isinstance(op, hivm.GetBlockIdxOp)]
    found = 1
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            if isinstance(op, _CASTS):
                pending.append(op.results[0])
                continue
            by = _constant(op.operands[1]) if isinstance(op, (*_REMAINDERS, *_QUOTIENTS)) and use.index == 0 else None
            if by is None or by < 1 or (by != vector_cores if isinstance(op, _REMAINDERS) else by % vector_cores):
                return 1
            found = vector_cores
    return found


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return int(owner.value.value.data)
    return None


__all__ = ["blocks_per_point"]
