"""Finds which rows of a buffer an operand is a view of: all rows, or in each iteration of a loop the next rows.

The rows of a buffer are the parts along its first axis.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, SSAValue

from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile

INDEX_OPS = (arith.MuliOp, arith.IndexCastOp)
"""The operations through which an index is recognised as a multiple of an induction variable."""


@dataclass(frozen=True)
class Rows:
    """The rows of its buffer that an operand is a view of.

    Attributes:
        axis: the axis of the operand that counts the rows; None if the operand is one row and has no axis for the rows.
        loop: the loop whose iterations access the rows one after another, so that the whole loop accesses all rows; None if the
            operand itself has all rows.
    """

    axis: int | None
    loop: scf.ForOp | None = None


def rows_of(value: SSAValue, ranges: Ranges, parts: int) -> Rows | None:
    """Returns which rows of its buffer a view has.

    Args:
        value: the view, or the buffer itself.
        ranges: bounds of scalars.
        parts: the number of parts into which a loop over rows is to be divided.

    Returns:
        The rows; None where they are neither all rows nor the rows of one iteration of a loop over all rows, or if ``parts``
        does not divide the trip count of that loop.
    """
    chain: list[tile.RegionOp | tile.ViewOp] = []
    while isinstance(value.owner, (tile.RegionOp, tile.ViewOp)):
        chain.insert(0, value.owner)
        value = value.owner.source
    found: Rows | None = Rows(0)
    for link in chain:
        if found is not None:
            found = (_rows_in_region(link, found, ranges, parts) if isinstance(link, tile.RegionOp)
                     else _rows_in_view(link, found))
    return found


def _rows_in_region(link: tile.RegionOp, rows: Rows, ranges: Ranges, parts: int) -> Rows | None:
    if rows.axis is None:
        return rows
    offset, size = link.mixed_offsets()[rows.axis], link.mixed_sizes()[rows.axis]
    extent, loop = tile.shape_of(link.source)[rows.axis], rows.loop
    if offset != 0 or size != extent:
        loop = loop_over_rows(offset, size, extent, ranges, parts) if loop is None and rows.axis == 0 else None
        if loop is None:
            return None
    kept = link.kept.get_values()
    return Rows(kept.index(rows.axis) if rows.axis in kept else None, loop)


def loop_over_rows(offset: SSAValue | int, size: SSAValue | int, extent: int, ranges: Ranges, parts: int) -> scf.ForOp | None:
    """Returns the loop over all rows, of which each iteration accesses the next ``size`` rows.

    Args:
        offset: the first row that is accessed.
        size: the number of rows that are accessed.
        extent: the number of all rows.
        ranges: bounds of scalars.
        parts: the number of parts into which the loop is to be divided.

    Returns:
        The loop; None if ``offset`` is not ``size`` times the induction variable of a loop from 0 to ``extent // size`` with
        step 1, or if ``parts`` does not divide the trip count.
    """
    if isinstance(offset, int) or not isinstance(size, int):
        return None
    variable, factor = _as_multiple(offset, ranges)
    if factor != size:
        return None
    loop = variable.owner.parent_op() if isinstance(variable, BlockArgument) else None
    if not isinstance(loop, scf.ForOp) or variable is not loop.body.block.args[0] or loop.iter_args:
        return None
    bounds = [ranges.constant(bound) for bound in (loop.lb, loop.ub, loop.step)]
    return loop if bounds == [0, extent // size, 1] and extent % (parts * size) == 0 else None


def _as_multiple(value: SSAValue, ranges: Ranges) -> tuple[SSAValue, int]:
    """Returns an index as a value and the constant that multiplies it."""
    factor = 1
    while isinstance(owner := value.owner, INDEX_OPS):
        if isinstance(owner, arith.MuliOp):
            by = ranges.constant(owner.rhs)
            if by is None:
                break
            factor *= by
        value = owner.operands[0]
    return value, factor


def _rows_in_view(link: tile.ViewOp, rows: Rows) -> Rows | None:
    before, after = tile.shape_of(link.source), tile.shape_of(link.result)
    if [size for size in before if size != 1] != [size for size in after if size != 1]:
        return None
    if rows.axis is None or before[rows.axis] == 1:
        return Rows(None, rows.loop)
    position = sum(size != 1 for size in before[:rows.axis])
    return Rows([axis for axis, size in enumerate(after) if size != 1][position], rows.loop)


__all__ = ["INDEX_OPS", "Rows", "loop_over_rows", "rows_of"]
