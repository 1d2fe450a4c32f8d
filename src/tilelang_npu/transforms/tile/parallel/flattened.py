"""Axes of ``T.Parallel`` that the body takes apart by division: ``for k in T.Parallel(M * N)`` with ``x[k // N, k % N]``.

Each is two axes, ``k // N`` and ``k % N``, as long as the number divides the axis, and the other numbers that it is divided by.
And axes of one point that the body does not ask for, ``for i, o in T.Parallel(M, 1)`` with ``x[i, 0]``: they are none.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.transforms.ir.locations import stand_in

_QUOTIENTS = (arith.DivUIOp, arith.DivSIOp, arith.FloorDivSIOp)
_RESTS = (arith.RemUIOp, arith.RemSIOp)


def unflattened(loop: tile.ParallelOp) -> tile.ParallelOp | None:
    """A copy of a loop, in front of it, with two axes for each that its body takes apart; None where it does so with none."""
    made = loop
    while (found := _axis(made)) is not None:
        split = _split(made, *found)
        if made is not loop:
            Rewriter.erase_op(made)
        made = split
    return made if made is not loop else None


def without_idle_axes(loop: tile.ParallelOp) -> tile.ParallelOp:
    """A loop, or in its place one without the axes of one point that its body does not ask for."""
    extents, old = loop.mixed_extents(), loop.body.block.args
    kept = [axis for axis, extent in enumerate(extents) if extent != 1 or old[axis].first_use is not None] or [0]
    if len(kept) == len(extents):
        return loop
    body = Block(arg_types=[IndexType()] * len(kept))
    mapping: dict[SSAValue, SSAValue] = {old[axis]: place for axis, place in zip(kept, body.args, strict=True)}
    for before, after in mapping.items():
        after.name_hint = before.name_hint
    for op in loop.body.block.ops:
        body.add_op(op.clone(value_mapper=mapping))
    made = tile.ParallelOp([extents[axis] for axis in kept], Region(body))
    stand_in(loop, made)
    made.attributes.update(loop.attributes)
    Rewriter.replace_op(loop, made, [])
    return made


def _axis(loop: tile.ParallelOp) -> tuple[int, int] | None:
    """An axis that can be two, and the extent of the inner one."""
    for axis, (extent, argument) in enumerate(zip(loop.mixed_extents(), loop.body.block.args, strict=True)):
        numbers = {number for op in loop.body.block.walk() if (number := _divisor(op, argument)) is not None}
        if isinstance(extent, int) and numbers:
            inner = min(numbers)
            if 1 < inner < extent and not any(size % inner for size in (extent, *numbers)):
                return axis, inner
    return None


def _divisor(op: Operation, place: SSAValue) -> int | None:
    """The number that an operation divides a loop variable by, or the sum that stands for one; None where it does not."""
    if not isinstance(op, (*_QUOTIENTS, *_RESTS)) or affine(op.operands[0]) != affine(place):
        return None
    return constant_value(op.operands[1])


def _split(loop: tile.ParallelOp, axis: int, inner: int) -> tile.ParallelOp:
    """A copy of a loop in front of it, with two axes for one, the second of an extent."""
    old = loop.body.block.args
    body = Block(arg_types=[IndexType()] * (len(old) + 1))
    size = arith.ConstantOp(IntegerAttr(inner, IndexType()))
    first = arith.MuliOp(body.args[axis], size.result)
    place = arith.AddiOp(first.result, body.args[axis + 1])
    values = [*body.args[:axis], place.result, *body.args[axis + 2:]]
    mapping: dict[SSAValue, SSAValue] = dict(zip(old, values, strict=True))
    for value, argument in zip(values, old, strict=True):
        value.name_hint = argument.name_hint
    body.add_ops([size, first, place])
    stand_in(loop, size, first, place)
    for op in loop.body.block.ops:
        body.add_op(op.clone(value_mapper=mapping))
    for op in [op for op in body.walk() if _divisor(op, place.result) is not None]:
        _put(op, body.args[axis], body.args[axis + 1], inner)
    extents = loop.mixed_extents()
    extent = extents[axis]
    assert isinstance(extent, int)
    extents[axis:axis + 1] = [extent // inner, inner]
    made = tile.ParallelOp(extents, Region(body))
    stand_in(loop, made)
    Rewriter().insert_op(made, InsertPoint.before(loop))
    return made


def _put(op: Operation, outer: SSAValue, rest: SSAValue, inner: int) -> None:
    """A quotient or a rest of the old axis in terms of the two."""
    number = constant_value(op.operands[1])
    assert number is not None
    times = number // inner
    if times == 1:
        Rewriter.replace_op(op, [], [outer if isinstance(op, _QUOTIENTS) else rest])
        return
    by = arith.ConstantOp(IntegerAttr(times, IndexType()))
    made: list[Operation] = [by, arith.DivUIOp(outer, by.result)]
    if isinstance(op, _RESTS):
        high, size = arith.RemUIOp(outer, by.result), arith.ConstantOp(IntegerAttr(inner, IndexType()))
        first = arith.MuliOp(high.result, size.result)
        made = [by, high, size, first, arith.AddiOp(first.result, rest)]
    stand_in(op, *made)
    Rewriter.replace_op(op, made, [made[-1].results[0]])


__all__ = ["unflattened", "without_idle_axes"]
