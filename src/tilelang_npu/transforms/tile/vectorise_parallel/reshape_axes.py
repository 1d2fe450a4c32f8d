"""Reshapes the iteration space of a ``T.Parallel``: splits axes whose index is divided, and removes unused axes of size 1.

``for k in T.Parallel(M * N)`` with the access ``x[k // N, k % N]`` becomes a loop over two axes, ``k // N`` and ``k % N``. The
divisor must divide the size of the axis and all other divisors of the same index. ``for i, o in T.Parallel(M, 1)`` with the
access ``x[i, 0]`` becomes a loop over ``i`` only.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.locations import copy_location
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.constants import constant_value

_QUOTIENTS = (arith.DivUIOp, arith.DivSIOp, arith.FloorDivSIOp)
_REMAINDERS = (arith.RemUIOp, arith.RemSIOp)


def split_divided_axes(loop: tile.ParallelOp) -> tile.ParallelOp | None:
    """Inserts, before a loop, a copy of the loop in which each axis whose index the body divides is split into two axes.

    Returns:
        The copy; None if no axis can be split.
    """
    made = loop
    while (found := _find_axis_to_split(made)) is not None:
        split = _split_axis(made, *found)
        if made is not loop:
            Rewriter.erase_op(made)
        made = split
    return made if made is not loop else None


def drop_unused_unit_axes(loop: tile.ParallelOp) -> tile.ParallelOp:
    """Replaces a loop by one without the axes of size 1 whose variables the body does not use.

    Returns:
        The new loop; the loop itself if it has no such axis.
    """
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
    copy_location(loop, made)
    made.attributes.update(loop.attributes)
    Rewriter.replace_op(loop, made, [])
    return made


def _find_axis_to_split(loop: tile.ParallelOp) -> tuple[int, int] | None:
    """Returns an axis that can be split, and the extent of the inner axis; None where there is none."""
    for axis, (extent, argument) in enumerate(zip(loop.mixed_extents(), loop.body.block.args, strict=True)):
        numbers = {number for op in loop.body.block.walk() if (number := _divisor_of(op, argument)) is not None}
        if isinstance(extent, int) and numbers:
            inner = min(numbers)
            if 1 < inner < extent and not any(size % inner for size in (extent, *numbers)):
                return axis, inner
    return None


def _divisor_of(op: Operation, place: SSAValue) -> int | None:
    """Returns the constant by which an operation divides a loop variable, or an equal sum; None where it does not."""
    if not isinstance(op, (*_QUOTIENTS, *_REMAINDERS)) or affine(op.operands[0]) != affine(place):
        return None
    return constant_value(op.operands[1])


def _split_axis(loop: tile.ParallelOp, axis: int, inner: int) -> tile.ParallelOp:
    """Inserts a copy of a loop before it, with an axis split into two; ``inner`` is the extent of the second."""
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
    copy_location(loop, size, first, place)
    for op in loop.body.block.ops:
        body.add_op(op.clone(value_mapper=mapping))
    for op in [op for op in body.walk() if _divisor_of(op, place.result) is not None]:
        _replace_division(op, body.args[axis], body.args[axis + 1], inner)
    extents = loop.mixed_extents()
    extent = extents[axis]
    assert isinstance(extent, int)
    extents[axis:axis + 1] = [extent // inner, inner]
    made = tile.ParallelOp(extents, Region(body))
    copy_location(loop, made)
    Rewriter().insert_op(made, InsertPoint.before(loop))
    return made


def _replace_division(op: Operation, outer: SSAValue, rest: SSAValue, inner: int) -> None:
    """Replaces a quotient or remainder of the old axis by an expression of the two new ones."""
    number = constant_value(op.operands[1])
    assert number is not None
    times = number // inner
    if times == 1:
        Rewriter.replace_op(op, [], [outer if isinstance(op, _QUOTIENTS) else rest])
        return
    by = arith.ConstantOp(IntegerAttr(times, IndexType()))
    made: list[Operation] = [by, arith.DivUIOp(outer, by.result)]
    if isinstance(op, _REMAINDERS):
        high, size = arith.RemUIOp(outer, by.result), arith.ConstantOp(IntegerAttr(inner, IndexType()))
        first = arith.MuliOp(high.result, size.result)
        made = [by, high, size, first, arith.AddiOp(first.result, rest)]
    copy_location(op, *made)
    Rewriter.replace_op(op, made, [made[-1].results[0]])


__all__ = ["drop_unused_unit_axes", "split_divided_axes"]
