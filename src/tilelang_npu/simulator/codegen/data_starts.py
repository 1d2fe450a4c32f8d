"""Finds the part of a slice's start that the kernel has read: from memory, or from an integer argument.

A slice of a global tensor may extend past the tensor's end: the lowering clips it. A loop variable or block index may take it
past the end entirely, as in the last round of a loop over tiles. A number that was read and that points outside the tensor is a
mistake in the data. In ``offsets[g] + tile * 64`` the checked part is therefore ``offsets[g]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilelang_npu.simulator.codegen.handlers import has_effect

_STORAGE = (memref.AllocaOp, memref.AllocOp)
_CONVERSIONS = (arith.IndexCastOp, arith.ExtSIOp, arith.TruncIOp)
READ = "read"
COUNTED = "counted"
"""What a number depends on: ``READ`` a number from memory or an argument, ``COUNTED`` a loop, the block or the core."""


@dataclass(frozen=True)
class DataStart:
    """The part of a start that the kernel has read.

    Attributes:
        terms: values with their factors, which are added up.
        constant: the constant that is added.
        whole: whether this is the whole start: no loop variable or block index is added.
    """

    terms: tuple[tuple[SSAValue, int], ...]
    constant: int
    whole: bool


def data_start(offset: SSAValue) -> DataStart | None:
    """Returns the part of a start that the kernel has read; None if there is no such part."""
    terms = list(_terms(offset, 1))
    read = [(term, factor) for term, factor in terms if isinstance(term, SSAValue) and _sources(term, ()) == {READ}]
    if not read:
        return None
    constant = sum(term * factor for term, factor in terms if isinstance(term, int))
    others = [term for term, _ in terms if isinstance(term, SSAValue) and READ not in _sources(term, ())]
    mixed = len(terms) - len(read) - len(others) - sum(isinstance(term, int) for term, _ in terms)
    return DataStart(tuple(read), constant, not others and not mixed)


def unclamped_start(offset: SSAValue, sizes: Iterable[SSAValue]) -> SSAValue | None:
    """Returns the start ``x`` where a view starts at ``min(x, extent - 1)`` because it has no elements if ``x`` is outside.

    Such a view is what the lowering makes of an index on an axis that the view drops. Returns None for any other view, in
    particular where the author has written the minimum.

    Args:
        offset: the offset of the view along the dropped axis.
        sizes: the sizes of the view that are no constants.
    """
    minimum = offset.owner
    if not isinstance(minimum, arith.MinSIOp):
        return None
    start = minimum.lhs
    conditions = [size.owner.cond for size in sizes if isinstance(size.owner, arith.SelectOp)]
    return start if any(start in _subtracted(condition) for condition in conditions) else None


def _subtracted(condition: SSAValue) -> Iterator[SSAValue]:
    """Yields each ``x`` of the comparisons ``extent - x < 1`` in a condition."""
    op = condition.owner
    if isinstance(op, arith.CmpiOp) and isinstance(op.lhs.owner, arith.SubiOp):
        yield op.lhs.owner.rhs
    elif isinstance(op, arith.OrIOp):
        yield from _subtracted(op.lhs)
        yield from _subtracted(op.rhs)


def _terms(value: SSAValue, factor: int) -> Iterator[tuple[SSAValue | int, int]]:
    """Yields the terms of a sum, each with its factor."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        yield op.value.value.data, factor
    elif isinstance(op, arith.AddiOp):
        yield from _terms(op.lhs, factor)
        yield from _terms(op.rhs, factor)
    elif isinstance(op, arith.SubiOp):
        yield from _terms(op.lhs, factor)
        yield from _terms(op.rhs, -factor)
    elif isinstance(op, _CONVERSIONS):
        yield from _terms(op.operands[0], factor)
    elif isinstance(op, arith.MuliOp) and (scale := _constant(op.rhs)) is not None:
        yield from _terms(op.lhs, factor * scale)
    elif isinstance(op, arith.MuliOp) and (scale := _constant(op.lhs)) is not None:
        yield from _terms(op.rhs, factor * scale)
    else:
        yield value, factor


def _constant(value: SSAValue) -> int | None:
    op = value.owner
    return op.value.value.data if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr) else None


def _sources(value: SSAValue, above: tuple[SSAValue, ...]) -> set[str]:
    """Returns what a number depends on; empty for a constant.

    Args:
        value: the number.
        above: the values whose sources are being computed. A variable that depends on itself counts something.
    """
    if value in above:
        return {COUNTED}
    above = (*above, value)
    op = value.owner
    if isinstance(value, BlockArgument) or not isinstance(op, Operation):
        return {READ} if _is_integer_argument(value) else {COUNTED}
    if isinstance(op, memref.LoadOp):
        if not isinstance(op.memref.owner, _STORAGE):
            return {READ}
        stores = [use.operation for use in op.memref.uses if isinstance(use.operation, memref.StoreOp)]
        return {one for store in stores for one in _sources(store.value, above)} or {COUNTED}
    if isinstance(op, scf.IfOp):
        place = op.results.index(value)
        ends = [region.block.last_op for region in op.regions if region.blocks]
        return {one for end in ends if end is not None for one in _sources(end.operands[place], above)}
    if op.regions or has_effect(op) or op.dialect_name() == "hivm":
        return {COUNTED}
    return {one for operand in op.operands if isinstance(operand.type, (IntegerType, IndexType))
            for one in _sources(operand, above)}


def _is_integer_argument(value: SSAValue) -> bool:
    """Whether a value is an integer that the caller passes, and not one of the grid's sizes."""
    if not isinstance(value, BlockArgument) or not isinstance(value.owner.parent_op(), FuncOp):
        return False
    return isinstance(value.type, IntegerType) and not (value.name_hint or "").startswith("grid_")
