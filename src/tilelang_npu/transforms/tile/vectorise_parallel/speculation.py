"""Finds and moves operations in branches of a ``T.Parallel`` that can be executed even if the branch is not taken."""

from __future__ import annotations

from xdsl.dialects import arith, math, memref, scf
from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Block, Operation
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.buffers import space_of
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.mlir.arith import DIVISIONS


def is_in_bounds(access: memref.LoadOp | memref.StoreOp, *, clipped: bool) -> bool:
    """Whether an access is inside of its buffer at every point of the loop.

    Args:
        access: a load or a store.
        clipped: whether elements beyond the end of a tensor in GM count as inside, because a copy is clipped.
    """
    ranges = Ranges()
    clips = clipped and space_of(access.memref) == "gm"
    for index, size in zip(access.indices, tile.shape_of(access.memref), strict=True):
        known = affine(index).bounds(ranges.of)
        if known.low < 0 or not (clips or known.high < size):
            return False
    return True


def is_speculatable(op: Operation) -> bool:
    """Whether an operation may be executed at points where its result is not needed: it only computes scalars, and it does not
    divide by zero.
    """
    if isinstance(op, DIVISIONS):
        return Ranges().of(op.operands[1]).holds("!=") is True
    return isinstance(op, scf.YieldOp) or is_scalar(op)


def is_scalar(op: Operation) -> bool:
    """Whether an operation computes scalars from scalars: an operation of ``arith`` or ``math``, or a cast."""
    return op.name.split(".")[0] in (arith.Arith.name, math.Math.name) or isinstance(op, UnrealizedConversionCastOp)


def move_ops_before(block: Block, op: Operation) -> None:
    """Moves the operations of a block before ``op``, and erases the block's ``scf.yield``."""
    for inner in list(block.ops):
        inner.detach()
        if isinstance(inner, scf.YieldOp):
            inner.erase()
        else:
            Rewriter().insert_op(inner, InsertPoint.before(op))


__all__ = ["is_in_bounds", "is_scalar", "is_speculatable", "move_ops_before"]
