"""Which rows of a buffer an operand has: all of them, or those that the iterations of a loop take in turn."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.transforms.ir.ranges import Ranges

CHAIN = (arith.MuliOp, arith.IndexCastOp)
"""What an index is computed by that is a multiple of a loop's variable."""


@dataclass(frozen=True)
class Rows:
    """Which rows of its buffer an operand has.

    Attributes:
        axis: the operand's axis along which they lie; None where it shows one row and has no axis for it.
        loop: the loop whose iterations take the rows in turn; None for all rows at once.
    """

    axis: int | None
    loop: scf.ForOp | None = None


def rows_of(value: SSAValue, ranges: Ranges) -> Rows | None:
    """The rows that a view shows; None where it is neither all of them nor a loop's."""
    chain: list[tile.RegionOp | tile.ViewOp] = []
    while isinstance(value.owner, (tile.RegionOp, tile.ViewOp)):
        chain.insert(0, value.owner)
        value = value.owner.source
    found: Rows | None = Rows(0)
    for link in chain:
        if found is not None:
            found = _through_region(link, found, ranges) if isinstance(link, tile.RegionOp) else _through_view(link, found)
    return found


def _through_region(link: tile.RegionOp, rows: Rows, ranges: Ranges) -> Rows | None:
    if rows.axis is None:
        return rows
    offset, size = link.mixed_offsets()[rows.axis], link.mixed_sizes()[rows.axis]
    extent, loop = tile.shape_of(link.source)[rows.axis], rows.loop
    if offset != 0 or size != extent:
        loop = loop_over(offset, size, extent, ranges) if loop is None and rows.axis == 0 else None
        if loop is None:
            return None
    kept = link.kept.get_values()
    return Rows(kept.index(rows.axis) if rows.axis in kept else None, loop)


def loop_over(offset: SSAValue | int, size: SSAValue | int, extent: int, ranges: Ranges) -> scf.ForOp | None:
    """The loop whose iterations take ``size`` of ``extent`` rows in turn, all of them."""
    if isinstance(offset, int) or not isinstance(size, int):
        return None
    variable, factor = _multiple(offset, ranges)
    if factor != size:
        return None
    loop = variable.owner.parent_op() if isinstance(variable, BlockArgument) else None
    if not isinstance(loop, scf.ForOp) or variable is not loop.body.block.args[0] or loop.iter_args:
        return None
    bounds = [ranges.constant(bound) for bound in (loop.lb, loop.ub, loop.step)]
    return loop if bounds == [0, extent // size, 1] and extent % (2 * size) == 0 else None


def _multiple(value: SSAValue, ranges: Ranges) -> tuple[SSAValue, int]:
    """An index as a value times a constant."""
    factor = 1
    while isinstance(owner := value.owner, CHAIN):
        if isinstance(owner, arith.MuliOp):
            by = ranges.constant(owner.rhs)
            if by is None:
                break
            factor *= by
        value = owner.operands[0]
    return value, factor


def _through_view(link: tile.ViewOp, rows: Rows) -> Rows | None:
    before, after = tile.shape_of(link.source), tile.shape_of(link.result)
    if [size for size in before if size != 1] != [size for size in after if size != 1]:
        return None
    if rows.axis is None or before[rows.axis] == 1:
        return Rows(None, rows.loop)
    position = sum(size != 1 for size in before[:rows.axis])
    return Rows([axis for axis, size in enumerate(after) if size != 1][position], rows.loop)


__all__ = ["CHAIN", "Rows", "loop_over", "rows_of"]
