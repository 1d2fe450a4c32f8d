"""Guards the elements of tensors in GM that a ``T.Parallel`` accesses point by point.

Vector work accesses a tensor in GM by copies, which are clipped at its end: elements past the end read as 0 and are not
written. Scalar loops must have the same results, so each of their accesses that may lie past the end gets the condition
``index < size``, if no branch of the author has it. A negative index is an error in both forms.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    UnrealizedConversionCastOp,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.buffers import space_of
from tilelang_npu.analysis.guards import conditions_around, is_surely_nonnegative
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import Linear
from tilelang_npu.transforms.infra.op_builder import float_type


def guard_accesses(loop: tile.ParallelOp) -> None:
    """Adds the conditions to the loads and stores in the body of a loop.

    Args:
        loop: the loop, which is changed in place.
    """
    ranges = Ranges()
    for op in [inner for inner in loop.body.block.walk() if isinstance(inner, memref.LoadOp | memref.StoreOp)]:
        if space_of(op.memref) != "gm" or tile.ATOMIC in op.attributes:
            continue
        limits = list(_limits(op, ranges))
        if limits:
            _guard(op, limits)


def _limits(op: memref.LoadOp | memref.StoreOp, ranges: Ranges) -> Iterator[tuple[SSAValue, SSAValue | int, int]]:
    """Yields the index, the size and the number of each axis on which an access may lie past the end."""
    owner = op.memref.owner
    sizes = owner.mixed_sizes() if isinstance(owner, tile.TensorOp | tile.StridedTensorOp) else tile.shape_of(op.memref)
    for axis, (index, size) in enumerate(zip(op.indices, sizes, strict=True)):
        room = affine(size, ranges.constant) - affine(index, ranges.constant) - Linear(1)
        if size == -1 or not is_surely_nonnegative(room, conditions_around(op.parent_block()), ranges):
            yield index, size, axis


def _guard(op: memref.LoadOp | memref.StoreOp, limits: list[tuple[SSAValue, SSAValue | int, int]]) -> None:
    """Replaces an access by one that is executed where each index is below its size."""
    before: list[Operation] = []

    def emit(made: Operation) -> SSAValue:
        made.location = op.location
        before.append(made)
        return made.results[0]

    def constant(value: int) -> SSAValue:
        return emit(arith.ConstantOp(IntegerAttr(value, IndexType())))

    holds: SSAValue | None = None
    for index, size, axis in limits:
        limit = size if isinstance(size, SSAValue) else constant(size) if size >= 0 else emit(
            memref.DimOp(op.memref, constant(axis)))
        below = emit(arith.CmpiOp(index, limit, "slt"))
        holds = below if holds is None else emit(arith.AndIOp(holds, below, i1))
    assert holds is not None
    inside = op.clone()
    inside.location = op.location
    if isinstance(op, memref.StoreOp):
        choice = scf.IfOp(holds, [], Region(Block([inside, scf.YieldOp()])))
    else:
        kind = op.results[0].type
        nothing = _zero(kind)
        for made in nothing:
            made.location = op.location
        choice = scf.IfOp(holds, [kind], Region(Block([inside, scf.YieldOp(inside.results[0])])),
                          Region(Block([*nothing, scf.YieldOp(nothing[-1].results[0])])))
    choice.location = op.location
    Rewriter.insert_op([*before, choice], InsertPoint.before(op))
    if isinstance(op, memref.LoadOp):
        op.results[0].replace_all_uses_with(choice.results[0])
    Rewriter.erase_op(op)


def _zero(kind: Attribute) -> list[Operation]:
    """Returns operations the last of which gives 0 of an element type."""
    if not isinstance(kind, IntegerType | IndexType):
        return [arith.ConstantOp(FloatAttr(0.0, float_type(kind)))]
    if isinstance(kind, IndexType) or kind.signedness.data is Signedness.SIGNLESS:
        return [arith.ConstantOp(IntegerAttr(0, kind))]
    made = arith.ConstantOp(IntegerAttr(0, IntegerType(kind.width.data)))  # constants have no sign
    return [made, UnrealizedConversionCastOp.get([made.result], [kind])]


__all__ = ["guard_accesses"]
