"""Tracks the part of a buffer that a sequence of writes has filled, as a set of strips.

A strip is a region of the buffer that has the buffer's whole extent along all axes except for at most one. The Vector cores of
a block execute the same statements. If all of them access the buffer and each writes a different part, the parts are counted as
one write to the union of these parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from types import MappingProxyType

from xdsl.ir import BlockArgument, SSAValue

from tilelang_npu.analysis.buffers import covers_root, space_of
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import Bound, Linear
from tilelang_npu.target import core_of


class WrittenStrips:
    """The strips of a buffer that have been written so far.

    Args:
        buffer: the allocation.
        ranges: bounds of scalars; offsets that are constants by these bounds are known.
    """

    def __init__(self, buffer: SSAValue, ranges: Ranges) -> None:
        self._shape = tile.shape_of(buffer)
        self._shared = core_of(space_of(buffer)) != "AIV"  # of L1 there is one for all Vector cores
        self._ranges = ranges
        self._is_whole = False
        self._strips: dict[int, list[tuple[int, int]]] = {}

    def copy(self) -> WrittenStrips:
        """Returns a copy; a later :meth:`add` to one of the two does not change the other."""
        made = copy(self)
        made._strips = {axis: list(strips) for axis, strips in self._strips.items()}
        return made

    def add(self, view: SSAValue, trips: Mapping[SSAValue, Bound] = MappingProxyType({})) -> None:
        """Records a write to a view of the buffer; a write to a view that is no strip is not recorded.

        Args:
            view: the view that is written.
            trips: the induction variables of loops that start at 0 with step 1, each with its trip count. The write is recorded
                for all values of these variables.
        """
        if covers_root(view):
            self._is_whole = True
        elif (strip := self._strip_of(view) or self._strip_over_trips(view, trips)) is not None:
            axis, start, end = strip
            self._strips.setdefault(axis, []).append((start, end))

    def add_element(self, indices: Sequence[SSAValue], trips: Mapping[SSAValue, Bound]) -> None:
        """Records writes to single elements of the buffer; writes whose elements are together no strip are not recorded.

        Args:
            indices: the index of the element along each axis of the buffer.
            trips: the induction variables of loops that start at 0 with step 1, each with its trip count. The write is recorded
                for all values of these variables.
        """
        strip = self._union_over_trips([(index, 1) for index in indices], trips)
        if strip is not None:
            axis, start, end = strip
            self._strips.setdefault(axis, []).append((start, end))

    @property
    def is_complete(self) -> bool:
        """Whether the recorded writes surely fill the whole buffer."""
        return self._is_whole or any(_first_gap(strips) >= self._shape[axis] for axis, strips in self._strips.items())

    def covers(self, view: SSAValue) -> bool:
        """Whether the recorded writes surely fill all elements of a view of the buffer."""
        strip = None if self.is_complete else self._strip_of(view)
        return self.is_complete or (strip is not None and _first_gap(self._strips.get(strip[0], []), strip[1]) >= strip[2])

    def _strip_of(self, view: SSAValue) -> tuple[int, int, int] | None:
        """Returns the strip that a view shows, as the axis, the first index, and the index after the last one along this axis.

        The result is ``(0, 0, extent)`` for a view of the whole buffer, or if the parts that the Vector cores access are
        together the whole buffer. None if the view is no strip.
        """
        region_and_axes = _region_of_view(view)
        if region_and_axes is None:
            return None
        found = None
        for axis, (offset, size) in enumerate(region_and_axes[0]):
            extent = self._shape[axis]
            start = offset if isinstance(offset, int) else self._ranges.constant(offset)
            if not isinstance(size, int) or (start is None and not (self._shared and _is_sub_block_part(
                    offset, size, extent, self._ranges))):
                return None
            if start is None or (start == 0 and size == extent):
                continue
            if found is not None:
                return None
            found = axis, start, start + size
        return found or (0, 0, self._shape[0])

    def _strip_over_trips(self, view: SSAValue, trips: Mapping[SSAValue, Bound]) -> tuple[int, int, int] | None:
        """Returns the union of the regions that a view shows in all iterations of loops, as :meth:`_strip_of` does.

        In a buffer that all Vector cores access, the index of the sub-block counts as an induction variable. None if the union
        is no strip, if it has gaps, or if a variable moves the view along several axes.
        """
        while isinstance(view.owner, tile.ViewOp):  # the same elements in another shape
            view = view.owner.source
        region_and_axes = _region_of_view(view)
        return None if region_and_axes is None else self._union_over_trips(region_and_axes[0], trips)

    def _union_over_trips(self, sides: Sequence[tuple[SSAValue | int, SSAValue | int]],
                          trips: Mapping[SSAValue, Bound]) -> tuple[int, int, int] | None:
        """Returns the union of the regions with an offset and a size along each axis, as :meth:`_strip_over_trips` does."""
        left = dict(trips)
        starts = [affine(offset, self._ranges.constant) for offset, _ in sides]
        if self._shared:
            left.update((index, count) for start in starts for index in start.terms
                        if (count := _vector_cores_counted_by(index)))
        found = None
        for axis, (start, (_, size), extent) in enumerate(zip(starts, sides, self._shape, strict=True)):
            end = _end_of_pieces(start, size, left) if isinstance(size, int) else None
            if end is None or (found is not None and (start.constant, end) != (0, extent)):
                return None
            if (start.constant, end) != (0, extent):
                found = axis, start.constant, end
        return found or (0, 0, self._shape[0])


def _region_of_view(view: SSAValue) -> tuple[list[tuple[SSAValue | int, SSAValue | int]], list[int]] | None:
    """Returns the offset and size of a view along each axis of its buffer, and the axes of the buffer that the view keeps.

    None if a view in the chain changes the shape, or if both a region and a region of that region have an offset other than 0
    along the same axis.
    """
    region = view.owner
    if not isinstance(region, tile.RegionOp):
        return None if isinstance(region, tile.ViewOp) else (
            [(0, extent) for extent in tile.shape_of(view)], list(range(len(tile.shape_of(view)))))
    around = _region_of_view(region.source)
    if around is None:
        return None
    sides, axes = around
    for axis, (offset, size) in enumerate(zip(region.mixed_offsets(), region.mixed_sizes(), strict=True)):
        start, _ = sides[axes[axis]]
        if start != 0 and offset != 0:
            return None
        sides[axes[axis]] = (offset if start == 0 else start), size
    return sides, [axes[axis] for axis in region.kept.get_values()]


def _end_of_pieces(offset: Linear[SSAValue], size: int, left: dict[SSAValue, Bound]) -> int | None:
    """Returns the index after the last element of the union of slices that begin at all values of an offset.

    Args:
        offset: the first index of a slice; an affine expression of induction variables.
        size: the number of elements of a slice.
        left: the induction variables that are not used along another axis, with their trip counts. The variables of
            ``offset`` are removed from it.

    Returns:
        The index; None if there are gaps between the slices, or if ``offset`` depends on any other value.
    """
    reached = size
    for counter, factor in sorted(offset.terms.items(), key=lambda term: term[1]):
        count = left.pop(counter, 0)
        if not isinstance(count, int) or count < 1 or not 0 < factor <= reached:
            return None
        reached += factor * (count - 1)
    return offset.constant + reached


def _first_gap(strips: list[tuple[int, int]], reached: int = 0) -> int:
    """Returns the smallest index, from ``reached`` on, that is in none of the strips, each a pair of first index and end."""
    for start, end in sorted(strips):
        if start > reached:
            break
        reached = max(reached, end)
    return reached


def _is_sub_block_part(offset: SSAValue | int, size: int, extent: int, ranges: Ranges) -> bool:
    """Whether an offset is the index of the sub-block times ``size``, and ``size`` times the number of sub-blocks is
    ``extent``.
    """
    form = affine(offset, ranges.constant)
    index = None if form.single is None else form.single[0]
    return (index is not None and _vector_cores_counted_by(index) * size == extent
            and form == size * Linear[SSAValue].of(index))


def _vector_cores_counted_by(value: SSAValue) -> int:
    """Returns the number of Vector cores of a block if a value is the index of the Vector core in its block; otherwise 0."""
    launch = value.block.parent_op() if isinstance(value, BlockArgument) else None
    if (isinstance(launch, tile.LaunchOp) and launch.explicit_sub_block is not None and launch.sub_blocks.value.data > 1
            and isinstance(value, BlockArgument) and value.index == len(value.block.args) - 1):
        return launch.sub_blocks.value.data
    return 0


__all__ = ["WrittenStrips"]
