"""Which part of a buffer several writes fill together: strips that are whole along all axes but one.

The two Vector cores of a block run the same statements, each on its half of a tensor that both see; together they fill it.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from types import MappingProxyType

from xdsl.ir import BlockArgument, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import Bound, Linear
from tilelang_npu.target import core_of
from tilelang_npu.transforms.ir.buffers import covers_root, space_of
from tilelang_npu.transforms.ir.ranges import Ranges


class Strips:
    """What is written of a buffer.

    Args:
        buffer: an allocation.
        ranges: tells which indices are constants.
    """

    def __init__(self, buffer: SSAValue, ranges: Ranges) -> None:
        self._shape = tile.shape_of(buffer)
        self._shared = core_of(space_of(buffer)) != "AIV"  # of L1 there is one for both Vector cores
        self._ranges = ranges
        self._all = False
        self._strips: dict[int, list[tuple[int, int]]] = {}

    def copy(self) -> Strips:
        """What is written so far."""
        made = copy(self)
        made._strips = {axis: list(strips) for axis, strips in self._strips.items()}
        return made

    def add(self, view: SSAValue, trips: Mapping[SSAValue, Bound] = MappingProxyType({})) -> None:
        """Count what a view of the buffer shows; one that is no strip counts for nothing.

        Args:
            trips: counters from 0 on, each with the numbers that it comes to: of the view all that it shows meanwhile counts.
        """
        if covers_root(view):
            self._all = True
        elif (strip := self._strip(view) or self._strip_of_all(view, trips)) is not None:
            axis, start, end = strip
            self._strips.setdefault(axis, []).append((start, end))

    @property
    def complete(self) -> bool:
        """Whether nothing of the buffer is left out."""
        return self._all or any(_reach(strips) >= self._shape[axis] for axis, strips in self._strips.items())

    def holds(self, view: SSAValue) -> bool:
        """Whether all that a view of the buffer shows was written."""
        strip = None if self.complete else self._strip(view)
        return self.complete or (strip is not None and _reach(self._strips.get(strip[0], []), strip[1]) >= strip[2])

    def _strip(self, view: SSAValue) -> tuple[int, int, int] | None:
        """Axis, first and end of a strip; ``(0, 0, extent)`` of all that both cores have together."""
        rectangle = _rectangle(view)
        if rectangle is None:
            return None
        found = None
        for axis, (offset, size) in enumerate(rectangle[0]):
            extent = self._shape[axis]
            start = offset if isinstance(offset, int) else self._ranges.constant(offset)
            if not isinstance(size, int) or (start is None and not (self._shared and 2 * size == extent and _is_half(
                    offset, size, self._ranges))):
                return None
            if start is None or (start == 0 and size == extent):
                continue
            if found is not None:
                return None
            found = axis, start, start + size
        return found or (0, 0, self._shape[0])

    def _strip_of_all(self, view: SSAValue, trips: Mapping[SSAValue, Bound]) -> tuple[int, int, int] | None:
        """The strip that a view shows while counters run. Of a buffer that both Vector cores see, the sub-block's index is one;
        what counts along one axis counts along no other."""
        while isinstance(view.owner, tile.ViewOp):  # the same elements in another shape
            view = view.owner.source
        rectangle = _rectangle(view)
        if rectangle is None:
            return None
        left = dict(trips)
        starts = [affine(offset, self._ranges.constant) for offset, _ in rectangle[0]]
        if self._shared:
            left.update((index, 2) for start in starts for index in start.terms if _is_sub_block_index(index))
        found = None
        for axis, (start, (_, size), extent) in enumerate(zip(starts, rectangle[0], self._shape, strict=True)):
            end = _end(start, size, left) if isinstance(size, int) else None
            if end is None or (found is not None and (start.constant, end) != (0, extent)):
                return None
            if (start.constant, end) != (0, extent):
                found = axis, start.constant, end
        return found or (0, 0, self._shape[0])


def _rectangle(view: SSAValue) -> tuple[list[tuple[SSAValue | int, SSAValue | int]], list[int]] | None:
    """Offset and size of a view along each axis of its buffer, and the buffer's axes that the view has; None where a view has
    another shape, or parts of parts do not begin at 0."""
    region = view.owner
    if not isinstance(region, tile.RegionOp):
        return None if isinstance(region, tile.ViewOp) else (
            [(0, extent) for extent in tile.shape_of(view)], list(range(len(tile.shape_of(view)))))
    around = _rectangle(region.source)
    if around is None:
        return None
    sides, axes = around
    for axis, (offset, size) in enumerate(zip(region.mixed_offsets(), region.mixed_sizes(), strict=True)):
        start, _ = sides[axes[axis]]
        if start != 0 and offset != 0:
            return None
        sides[axes[axis]] = (offset if start == 0 else start), size
    return sides, [axes[axis] for axis in region.kept.get_values()]


def _end(offset: Linear[SSAValue], size: int, left: dict[SSAValue, Bound]) -> int | None:
    """Where pieces of a size end that begin at all that an offset comes to; None where they leave something out in between.
    The counters are taken out of ``left``."""
    reached = size
    for counter, factor in sorted(offset.terms.items(), key=lambda term: term[1]):
        count = left.pop(counter, 0)
        if not isinstance(count, int) or count < 1 or not 0 < factor <= reached:
            return None
        reached += factor * (count - 1)
    return offset.constant + reached


def _reach(strips: list[tuple[int, int]], reached: int = 0) -> int:
    """The first place from one on that strips leave out."""
    for start, end in sorted(strips):
        if start > reached:
            break
        reached = max(reached, end)
    return reached


def _is_half(offset: SSAValue | int, size: int, ranges: Ranges) -> bool:
    """Whether an offset is the sub-block's index times a size."""
    form = affine(offset, ranges.constant)
    index = None if form.single is None else form.single[0]
    return index is not None and _is_sub_block_index(index) and form == size * Linear[SSAValue].of(index)


def _is_sub_block_index(value: SSAValue) -> bool:
    """Whether a value tells the two Vector cores of a block apart."""
    launch = value.block.parent_op() if isinstance(value, BlockArgument) else None
    return (isinstance(launch, tile.LaunchOp) and launch.explicit_sub_block is not None and launch.sub_blocks.value.data == 2
            and isinstance(value, BlockArgument) and value.index == len(value.block.args) - 1)


__all__ = ["Strips"]
