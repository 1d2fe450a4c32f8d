"""Tiles in UB at places where no vector instruction begins: ``x[i, j + 1]``, ``y[i, 3]``, rows of a buffer without gaps.

What is read there comes into a tile that begins at a block, and what is written goes through one. Row by row, where rows begin
at blocks and are long: a gather takes the elements from the blocks that hold them, and a selection puts them between those
that stay. Otherwise element by element, which the scalar unit can do anywhere. Which one is by the chip's cycles.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import SSAValue

from tilelang_npu import ops
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.transforms.ir.buffers import root_of
from tilelang_npu.transforms.ir.whole_blocks import is_paddable, places_of
from tilelang_npu.transforms.tile.parallel.indices import Index, Multiples
from tilelang_npu.transforms.tile.parallel.nests import I32, REPEAT, Nests, element_of, width_of


class Unaligned(Nests):
    """The detours of one loop to and from places at which no block begins."""

    def bring(self, source: SSAValue, found: Sequence[Index], landing: SSAValue) -> None:
        """Read the elements of an access into a tile of the box's rank, 1 along the axes that the access does not follow."""
        if self._is_by_rows(source, found, "gather"):
            self.tell("gathered", source, self.gathered(source, [index.sum for index in found], landing))
        else:
            cycles = self.move_elements(landing, source, [index.sum for index in found], write=False)
            self.tell("read element by element", source, cycles)

    def put(self, held: SSAValue, target: SSAValue, found: Sequence[Index]) -> None:
        """Write a tile of the box's shape to the elements of an access."""
        if self._is_by_rows(target, found, "select"):
            self._merged(held, target, found)
        else:
            cycles = self.move_elements(held, target, [index.sum for index in found], write=True)
            self.tell("written element by element", target, cycles)

    # -- row by row ----------------------------------------------------------------------------------------------------

    def _is_by_rows(self, buffer: SSAValue, found: Sequence[Index], name: str) -> bool:
        """Whether rows can be gathered from, or merged into, the buffer, and that takes fewer cycles."""
        cycles = self.rows_cycles(buffer, [index.sum for index in found], name)
        last = found[-1].axis
        return cycles is not None and last is not None and cycles < self.extents[last] * self.element_cycles()

    def rows_cycles(self, buffer: SSAValue, places: Sequence[Multiples], name: str) -> float | None:
        """What a row takes that is gathered from the buffer, or merged into it; None where there are no rows."""
        if len(places[-1].terms) != 1 or not places_of(buffer, padded=is_paddable(root_of(buffer))).rows:
            return None
        kind = dtype_of(element_of(buffer))
        gather, entry = ops.operation("gather"), ops.operation(name)
        assert isinstance(gather, ops.Structured) and isinstance(entry, (ops.Structured, ops.Elementwise))
        if kind not in gather.dtypes or kind not in entry.dtypes:
            return None
        return self._row_cycles(self.extents[places[-1].terms[0][0]], kind.nbytes, name)

    def _row_cycles(self, elements: int, nbytes: int, name: str) -> float:
        rates, repeats = self.chip.vector, ceil(elements * nbytes / REPEAT)
        total = 0.0
        for key in ("gather",) if name == "gather" else ("gather", "sel"):
            rate = rates[key]
            total += repeats * (rate.slope32 if nbytes >= 4 else rate.slope16)
            total += rate.fixed if name == "select" else 0  # each waits for the one before
        return total + 4 * self.chip.scalar.issue

    def _window(self, buffer: SSAValue, place: Multiples) -> tuple[int, int]:
        """First and end of the part of a row that holds an access and begins at a block; all of it where it may be anywhere."""
        whole = tile.shape_of(buffer)[-1]
        if not isinstance(place.offset, int):
            return 0, whole
        low, high = place.bounds(self.extents)
        unit = places_of(buffer, padded=True).unit
        return low // unit * unit, min(whole, ceil((high + 1) / unit) * unit)

    def gathered(self, source: SSAValue, places: Sequence[Multiples], landing: SSAValue) -> float:
        """Row by row into a tile of the box's rank; the cycles."""
        ((axis, step),), offset = places[-1].terms, places[-1].offset
        first, end = self._window(source, places[-1])
        front = self.front
        along = self.made(front, I32, [self.extents[axis]])
        self.count(front, self.sum(front, offset, -first), along, step)
        outer = sorted({each for place in places[:-1] for each, _ in place.terms})
        point, rows = self.nest(outer)
        at = [self.position(point, place, rows) for place in places[:-1]]
        window = self.insert(point, tile.RegionOp(source, [*at, first], [1] * len(at) + [end - first], [len(at)])).results[0]
        here = self.row_of(point, landing, rows, axis)
        self.insert(point, tile.CallOp("gather", [window, along], [here]))
        return (self.points(outer) * self._row_cycles(self.extents[axis], width_of(source), "gather")
                + self.chip.vector["gather"].fixed + self.chip.vector["dup"].fixed)

    def _merged(self, held: SSAValue, target: SSAValue, found: Sequence[Index]) -> None:
        last = found[-1]
        assert last.axis is not None
        (first, end), count = self._window(target, last.sum), self.extents[last.axis]
        front = self.front
        places, bounded = (self.made(front, I32, [end - first]) for _ in range(2))
        if isinstance(last.offset, int):
            begin: SSAValue | int = first - last.offset
        else:
            begin = self.insert(front, arith.SubiOp(self.index(front, first), last.offset)).results[0]
        self.count(front, begin, places)
        for name, bound in (("max", 0), ("min", count - 1)):
            limit = self.insert(front, arith.ConstantOp(IntegerAttr(bound, 32))).results[0]
            self.insert(front, tile.ElementwiseOp(name, [places if name == "max" else bounded, limit], bounded))
        ours = self.made(front, IntegerType(1), [end - first])
        self.insert(front, tile.ElementwiseOp("compare", [places, bounded], ours, {"compare_mode": "eq"}))
        moved = self.made(front, element_of(held), [end - first])
        axes = [index.axis for index in found[:-1] if index.axis is not None]
        point, rows = self.nest(axes)
        at = [self.position(point, index.sum, rows) for index in found[:-1]]
        window = self.insert(point, tile.RegionOp(target, [*at, first], [1] * len(at) + [end - first], [len(at)])).results[0]
        self.insert(point, tile.CallOp("gather", [self.row_of(point, held, rows, last.axis), bounded], [moved]))
        self.insert(point, tile.ElementwiseOp("select", [ours, moved, window], window))
        rates = self.chip.vector
        self.tell("merged into", target, self.points(axes) * self._row_cycles(count, width_of(target), "select")
                  + rates["dup"].fixed + 2 * rates["max"].fixed + rates["cmp"].fixed)


__all__ = ["Unaligned"]
