"""Turn ``T.clear`` of an accumulator into the ``init`` of the gemm that comes next: L0C has no fill of its own.

Runs after scope inference. The next use of the accumulator must be a gemm in the same block, or the first use inside
a loop that surely runs; there the gemm's ``init`` becomes true in the first iteration. Anything else is an error at
the fill.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i1
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.transforms.accumulators import comes_round, is_zero, next_touching
from tilelang_npu.transforms.buffers import root_of, space_of
from tilelang_npu.transforms.locations import refuse, stand_in
from tilelang_npu.transforms.ranges import Ranges


def _insert(op: Operation, before: Operation, source: Operation) -> None:
    stand_in(source, op)
    Rewriter().insert_op(op, InsertPoint.before(before))


def _fold(fill: tile.FillOp, ranges: Ranges) -> None:
    buffer = root_of(fill.target)
    label = buffer.owner.label.data if isinstance(buffer.owner, tile.AllocOp) else "the accumulator"
    if not is_zero(fill.value):
        raise refuse(fill, f"{label} is in L0C, which can only be cleared to zero", "T210",
                     help="add the value in vector work, or start from T.clear")
    follower = next_touching(fill.next_op, buffer)
    if follower is None:
        if comes_round(fill):
            raise refuse(fill, f"{label} is in L0C and its next use after this clear is in the next iteration", "T212",
                         help="clear it right before the gemm, or pass init=True to the gemm")
        _drop(fill)
        return
    first: SSAValue | None = None
    while isinstance(follower, scf.ForOp):
        loop = follower
        if ranges.trip_count(loop).low < 1:
            raise refuse(fill, f"{label} is cleared before a loop that may not run", "T211",
                         help="pass init=(k == 0) to the gemm, or guard the loop")
        position = arith.CmpiOp(loop.body.block.args[0], loop.lb, "eq")
        head = loop.body.block.first_op
        assert head is not None
        _insert(position, head, fill)
        first = position.result if first is None else _both(first, position.result, head, fill)
        follower = next_touching(head, buffer)
    if not isinstance(follower, tile.GemmOp):
        raise refuse(fill, f"{label} is in L0C and its next use after this clear is not a gemm", "T212",
                     help="clear it right before the loop of the gemm, or pass init=True to the gemm")
    if first is None:
        true = arith.ConstantOp(IntegerAttr(1, i1))
        _insert(true, follower, fill)
        first = true.result
    either = arith.OrIOp(first, follower.init)
    if ranges.constant(follower.init) == 0:
        follower.operands[3] = first
    else:
        _insert(either, follower, fill)
        follower.operands[3] = either.result
    _drop(fill)


def _both(a: SSAValue, b: SSAValue, before: Operation, source: Operation) -> SSAValue:
    both = arith.AndIOp(a, b)
    _insert(both, before, source)
    return both.result


def _drop(fill: tile.FillOp) -> None:
    Rewriter.erase_op(fill)


@dataclass(frozen=True)
class FoldAccumulatorClear(ModulePass):
    """The pass; see the module's text."""

    name = "fold-accumulator-clear"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = Ranges()
        for inner in list(op.walk()):
            if isinstance(inner, tile.FillOp) and space_of(inner.target) == "cc":
                _fold(inner, ranges)
