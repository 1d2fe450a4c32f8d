"""Emits detours for accesses that do not begin at a block (32 bytes) of UB.

Examples are ``x[i, j + 1]``, ``y[i, 3]``, and rows of a buffer without padding.

The detour of a load copies the elements to an aligned tile; that of a store copies them from an aligned tile. If the rows of
the buffer begin at blocks, the elements can be copied row by row: a gather copies the elements of a row, and for a store a
select then merges the row with the elements that keep their values. Otherwise, the scalar unit copies the elements one by one.
If both are possible, the one that takes fewer cycles is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import SSAValue

from tilelang_npu import ops
from tilelang_npu.analysis.block_alignment import is_paddable, places_of
from tilelang_npu.analysis.buffers import element_bytes, element_type_of, root_of
from tilelang_npu.analysis.index_sums import Index, IndexSum
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.target.chip_data import REPEAT_BYTES
from tilelang_npu.transforms.tile.vectorise_parallel.detours import I32, DetourEmitter


class UnalignedAccesses(DetourEmitter):
    """Emits copies through an aligned tile for the accesses of one ``T.Parallel`` that do not begin at a block of UB (32
    bytes), because vector operations can only access whole blocks."""

    def load_unaligned(self, source: SSAValue, found: Sequence[Index], landing: SSAValue) -> None:
        """Emits the detour of a load.

        Args:
            source: the loaded buffer.
            found: the index of each axis of the buffer.
            landing: the tile to which the elements are copied. It must have the rank of the iteration space, and size 1 along
                axes that the access does not use.
        """
        if self._are_rows_cheaper(source, found, "gather"):
            self.record_unaligned("gathered", source, self.gather_rows(source, [index.sum for index in found], landing))
        else:
            cycles = self.move_elements(landing, source, [index.sum for index in found], write=False)
            self.record_unaligned("read element by element", source, cycles)

    def store_unaligned(self, held: SSAValue, target: SSAValue, found: Sequence[Index]) -> None:
        """Emits the detour of a store.

        Args:
            held: the tile with the values to store, with the shape of the iteration space.
            target: the buffer that is stored to.
            found: the index of each axis of the buffer.
        """
        if self._are_rows_cheaper(target, found, "select"):
            self._merge_rows(held, target, found)
        else:
            cycles = self.move_elements(held, target, [index.sum for index in found], write=True)
            self.record_unaligned("written element by element", target, cycles)

    # -- row by row ----------------------------------------------------------------------------------------------------

    def _are_rows_cheaper(self, buffer: SSAValue, found: Sequence[Index], name: str) -> bool:
        """Whether rows can be gathered from, or merged into, a buffer, in fewer cycles than element by element."""
        cycles = self.row_cycles_of(buffer, [index.sum for index in found], name)
        last = found[-1].axis
        return cycles is not None and last is not None and cycles < self.extents[last] * self.element_cycles()

    def row_cycles_of(self, buffer: SSAValue, places: Sequence[IndexSum], name: str) -> float | None:
        """Returns the cycles of gathering one row from a buffer, or of merging one row into a buffer.

        Args:
            buffer: the buffer.
            places: for each axis of the buffer, the index of the access as an ``IndexSum``.
            name: ``gather`` for gathering, ``select`` for merging.

        Returns:
            The cycles; None if rows of the buffer do not begin at blocks, or if the Vector core does not support the elements.
        """
        if len(places[-1].terms) != 1 or not places_of(buffer, padded=is_paddable(root_of(buffer))).rows:
            return None
        kind = dtype_of(element_type_of(buffer))
        gather, entry = ops.operation("gather"), ops.operation(name)
        assert isinstance(gather, ops.Structured) and isinstance(entry, (ops.Structured, ops.Elementwise))
        if kind not in gather.dtypes or kind not in entry.dtypes:
            return None
        return self._row_cycles(self.extents[places[-1].terms[0][0]], kind.nbytes, name)

    def _row_cycles(self, elements: int, nbytes: int, name: str) -> float:
        rates, repeats = self.chip.vector, ceil(elements * nbytes / REPEAT_BYTES)
        total = 0.0
        for key in ("gather",) if name == "gather" else ("gather", "sel"):
            rate = rates[key]
            total += repeats * (rate.slope32 if nbytes >= 4 else rate.slope16)
            total += rate.fixed if name == "select" else 0  # each instruction waits for the one before
        return total + 4 * self.chip.scalar.issue

    def _aligned_window(self, buffer: SSAValue, place: IndexSum) -> tuple[int, int]:
        """Returns first and end of the aligned part of a row that holds an access; the whole row where its offset is unknown.
        """
        whole = tile.shape_of(buffer)[-1]
        if not isinstance(place.offset, int):
            return 0, whole
        low, high = place.bounds(self.extents)
        unit = places_of(buffer, padded=True).unit
        return low // unit * unit, min(whole, ceil((high + 1) / unit) * unit)

    def gather_rows(self, source: SSAValue, places: Sequence[IndexSum], landing: SSAValue) -> float:
        """Emits the gathering of all rows of an access into a tile.

        Args:
            source: the buffer.
            places: for each axis of the buffer, the index of the access as an ``IndexSum``.
            landing: the tile, with the rank of the iteration space.

        Returns:
            The cycles.
        """
        ((axis, step),), offset = places[-1].terms, places[-1].offset
        first, end = self._aligned_window(source, places[-1])
        front = self.before_loop
        along = self.allocate(front, I32, [self.extents[axis]])
        self.fill_arange(front, self.emit_sum(front, offset, -first), along, step)
        outer = sorted({each for place in places[:-1] for each, _ in place.terms})
        point, rows = self.emit_loops(outer)
        at = [self.emit_index(point, place, rows) for place in places[:-1]]
        window = self.insert(point, tile.RegionOp(source, [*at, first], [1] * len(at) + [end - first], [len(at)])).results[0]
        here = self.row_region(point, landing, rows, axis)
        self.insert(point, tile.CallOp("gather", [window, along], [here]))
        return (self.point_count(outer) * self._row_cycles(self.extents[axis], element_bytes(source), "gather")
                + self.chip.vector["gather"].fixed + self.chip.vector["dup"].fixed)

    def _merge_rows(self, held: SSAValue, target: SSAValue, found: Sequence[Index]) -> None:
        """Emits the merge of each row of a tile into the target: gather to its position, then select against the old elements.
        """
        last = found[-1]
        assert last.axis is not None
        (first, end), count = self._aligned_window(target, last.sum), self.extents[last.axis]
        front = self.before_loop
        places, bounded = (self.allocate(front, I32, [end - first]) for _ in range(2))
        if isinstance(last.offset, int):
            begin: SSAValue | int = first - last.offset
        else:
            begin = self.insert(front, arith.SubiOp(self.as_value(front, first), last.offset)).results[0]
        self.fill_arange(front, begin, places)
        for name, bound in (("max", 0), ("min", count - 1)):
            limit = self.insert(front, arith.ConstantOp(IntegerAttr(bound, 32))).results[0]
            self.insert(front, tile.ElementwiseOp(name, [places if name == "max" else bounded, limit], bounded))
        ours = self.allocate(front, IntegerType(1), [end - first])
        self.insert(front, tile.ElementwiseOp("compare", [places, bounded], ours, {"compare_mode": "eq"}))
        moved = self.allocate(front, element_type_of(held), [end - first])
        axes = [index.axis for index in found[:-1] if index.axis is not None]
        point, rows = self.emit_loops(axes)
        at = [self.emit_index(point, index.sum, rows) for index in found[:-1]]
        window = self.insert(point, tile.RegionOp(target, [*at, first], [1] * len(at) + [end - first], [len(at)])).results[0]
        self.insert(point, tile.CallOp("gather", [self.row_region(point, held, rows, last.axis), bounded], [moved]))
        self.insert(point, tile.ElementwiseOp("select", [ours, moved, window], window))
        rates = self.chip.vector
        cycles = (self.point_count(axes) * self._row_cycles(count, element_bytes(target), "select")
                  + rates["dup"].fixed + 2 * rates["max"].fixed + rates["cmp"].fixed)
        self.record_unaligned("merged into", target, cycles)


__all__ = ["UnalignedAccesses"]
