"""What a branch in ``T.Parallel`` does, at every point."""

from __future__ import annotations

from xdsl.dialects import arith, math, memref, scf
from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Block, Operation
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.mlir.arith import DIVISIONS
from tilelang_npu.transforms.ir.buffers import space_of
from tilelang_npu.transforms.ir.ranges import Ranges


def is_there(access: memref.LoadOp | memref.StoreOp, *, clipped: bool) -> bool:
    """Whether an element is there at every point; with ``clipped`` also what lies beyond the end of a tensor."""
    ranges = Ranges()
    clips = clipped and space_of(access.memref) == "gm"
    for index, size in zip(access.indices, tile.shape_of(access.memref), strict=True):
        known = affine(index).bounds(ranges.of)
        if known.low < 0 or not (clips or known.high < size):
            return False
    return True


def is_computed_anywhere(op: Operation) -> bool:
    """Whether an operation may be executed where its result is not asked for."""
    if isinstance(op, DIVISIONS):
        return Ranges().of(op.operands[1]).holds("!=") is True
    return isinstance(op, scf.YieldOp) or is_scalar(op)


def is_scalar(op: Operation) -> bool:
    """Whether an operation computes numbers of numbers."""
    return op.name.split(".")[0] in (arith.Arith.name, math.Math.name) or isinstance(op, UnrealizedConversionCastOp)


def put_before(block: Block, op: Operation) -> None:
    """Move what a block does in front of an operation."""
    for inner in list(block.ops):
        inner.detach()
        if isinstance(inner, scf.YieldOp):
            inner.erase()
        else:
            Rewriter().insert_op(inner, InsertPoint.before(op))


__all__ = ["is_computed_anywhere", "is_scalar", "is_there", "put_before"]
