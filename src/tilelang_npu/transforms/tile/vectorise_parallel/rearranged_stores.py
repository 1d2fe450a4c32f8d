"""Emits detours for stores of a ``T.Parallel`` whose elements, in the order of the loop, are no region of the buffer.

The stored values are computed in the order of the loop. They are then transposed or reversed into the order of the buffer, or
interleaved with the values of other stores or with elements of the buffer that are not stored to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import memref
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from tilelang_npu.analysis.buffers import element_bytes, element_type_of, root_of, space_of
from tilelang_npu.analysis.index_sums import IndexSum
from tilelang_npu.analysis.parallel_dependence import are_disjoint
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.linear import Linear
from tilelang_npu.target import BLOCK
from tilelang_npu.transforms.tile.vectorise_parallel.indices import Invariants, NotVectorisableAtOnce
from tilelang_npu.transforms.tile.vectorise_parallel.rearranged_loads import (
    ElementAccess,
    RearrangedLoads,
    is_dtype_supported,
)

INTERLEAVE_SCRATCH = 16 << 10
"""The most bytes of scratch that one interleave may take."""
_STEPS = (2, 4)
"""The steps between elements for which an interleave exists."""


@dataclass(frozen=True)
class Interleaving:
    """Two or four stores of which each writes every second or fourth element of rows, and which together write all elements.

    Attributes:
        stores: the stores, in the order of their elements in a row.
        places: for each axis of the buffer, the index of the first store as an ``IndexSum``: multiples of loop variables plus
            an offset.
    """

    stores: tuple[memref.StoreOp, ...]
    places: tuple[IndexSum, ...]


def find_interleavings(loop: tile.ParallelOp, invariants: Invariants, extents: Sequence[int],
                       ranges: Ranges) -> list[Interleaving]:
    """Finds the interleavings in the body of a loop.

    Between the stores of an interleaving there is no access to the elements that they write.

    Args:
        loop: the loop.
        invariants: the loop-invariant values of the loop.
        extents: the sizes of the iteration space.
        ranges: bounds of scalars.
    """
    found: list[Interleaving] = []
    begun: dict[tuple[SSAValue, tuple[IndexSum, ...]], dict[int, memref.StoreOp]] = {}
    for op in loop.body.block.ops:
        if not isinstance(op, (memref.LoadOp, memref.StoreOp)):
            continue
        places = [invariants.index_sum(value) for value in op.indices]
        last = places[-1] if places else None
        if isinstance(op, memref.LoadOp):
            for source, written in [key for key in begun if root_of(key[0]) is root_of(op.memref)]:
                if any(not are_disjoint(places, (*written[:-1], _shift_offset(written[-1], channel)), extents, ranges)
                       for channel in begun[source, written]):
                    del begun[source, written]
            continue
        whole = [place for place in places if place is not None]
        key = None
        if len(whole) == len(places) and last is not None and len(last.terms) == 1 and isinstance(last.offset, int):
            step = last.terms[0][1]
            if step in _STEPS and tile.ATOMIC not in op.attributes:
                channel = last.offset % step
                key = (op.memref, (*whole[:-1], _shift_offset(last, -channel)))
                held = begun.setdefault(key, {})
                held.pop(channel, None)
                held[channel] = op
                if len(held) == step:
                    stores = tuple(held[each] for each in range(step))
                    found.append(Interleaving(stores, key[1]))
                    del begun[key]
        for other in [each for each in begun if each != key and root_of(each[0]) is root_of(op.memref)]:
            del begun[other]
    return found


def _shift_offset(place: IndexSum, by: int) -> IndexSum:
    assert isinstance(place.offset, int)
    return IndexSum(place.terms, place.offset + by, Linear(place.offset + by))


class Detours(RearrangedLoads):
    """Emits the detours of one loop for all loads and stores."""

    def store_rearranged(self, held: SSAValue, target: SSAValue, places: Sequence[IndexSum], *, atomic: str | None) -> None:
        """Emits the detour of a store.

        Args:
            held: the tile with the values to store, with the shape of the iteration space.
            target: the buffer that is stored to.
            places: for each axis of the buffer, the index of the store as an ``IndexSum``.
            atomic: ``add``, ``max`` or ``min`` if the values are combined atomically with the elements of the buffer.

        Raises:
            NotVectorisableAtOnce: no operation can rearrange the elements, or an index is out of bounds, or a loop variable
                does not occur in the indices.
        """
        access = self._checked_access(target, places, self.extents)
        parts = access.split_axes(self.extents)
        self._check_all_axes(parts, self.extents)
        last = access.places[-1]
        if all(len(place.terms) <= 1 and all(abs(factor) == 1 for _, factor in place.terms) for place in parts.places):
            self._store_transposed(held, parts, atomic=atomic)
        elif space_of(target) == "gm" or atomic is not None:
            raise self.unsupported_error(target, "written")
        elif len(last.terms) == 1 and last.terms[0][1] == 2 and isinstance(last.offset, int):
            channel = last.offset % 2
            base = (*access.places[:-1], IndexSum(last.terms, last.offset - channel))
            self.store_interleaved([held if each == channel else None for each in range(2)], target, base)
        else:
            self.uses_other_pipes = True
            self.record_rearranged("the scalar unit", target, self.move_elements(held, target, access.places, write=True))

    def _check_all_axes(self, access: ElementAccess, extents: Sequence[int]) -> None:
        """Checks that a store uses each axis of the iteration space once.

        Raises:
            NotVectorisableAtOnce: it does not.
        """
        axes = access.variables
        if sorted(set(axes)) != [axis for axis, extent in enumerate(extents) if extent != 1]:
            msg = "a store does not use every loop variable"
            edit = "let each point write a separate element, and reduce these after the loop (T.reduce_sum and the like)"
            raise NotVectorisableAtOnce(msg, edit)
        if len(axes) != len(set(axes)) or any(len(place.terms) > 1 for place in access.places):
            raise self.unsupported_error(access.source, "written")

    # -- in another order ----------------------------------------------------------------------------------------------

    def _store_transposed(self, held: SSAValue, access: ElementAccess, *, atomic: str | None) -> None:
        """Stores a tile to an access in which axes are swapped or reversed."""
        order = access.variables
        extents = [self.extents[axis] for axis in order]
        starts: list[SSAValue | int] = []
        back: list[IndexSum] = [IndexSum((), 0) for _ in self.extents]
        for place in access.places:
            for axis, factor in place.terms:
                back[axis] = IndexSum(((order.index(axis), factor),), 0 if factor == 1 else self.extents[axis] - 1)
            end = sum(self.extents[axis] - 1 for axis, factor in place.terms if factor == -1)
            starts.append(self.emit_sum(self.before_loop, place.offset, -end))
        sizes = [self.extents[place.terms[0][0]] if place.terms else 1 for place in access.places]
        here = space_of(access.source) != "gm"
        self.uses_other_pipes = self.uses_other_pipes or not here
        sums = tuple(IndexSum(place.terms, start) for place, start in zip(access.places, starts, strict=True))
        if not ElementAccess(access.source, access.shape, sums).is_aligned_region(sizes):
            raise self.unsupported_error(access.source, "written")
        flat = None
        strides = self.strides_of(access.source) if here and atomic is None else None
        if strides is not None and tuple(sizes) == access.shape and prod(tile.shape_of(access.source)) == prod(sizes) and (
                len(strides) == 1 or strides[-2] == tile.shape_of(access.source)[-1]):
            flat = self._view_as(self.before_loop, access.source, [prod(sizes)])
        source = ElementAccess(held, tile.shape_of(held), tuple(back))
        if not isinstance(held.owner, tile.AllocOp) and self.by_region(source, extents, None) is None:
            copied = self.allocate(self.before_loop, element_type_of(held), tile.shape_of(held))
            self.insert(self.before_loop, tile.CopyOp(held, copied))
            source = ElementAccess(copied, tile.shape_of(copied), tuple(back))
        way = self.cheapest_way(source, extents, flat=flat)
        self.record_rearranged(way.description, access.source, way.cycles)
        turned = way.build()
        if flat is not None and turned is flat:
            return
        if flat is not None and isinstance(flat.owner, tile.ViewOp) and not list(flat.uses):
            Rewriter.erase_op(flat.owner)
        target = self._view_of_access(access)
        kept = [position for position, place in enumerate(access.places) if place.terms]
        if kept != list(range(len(sizes))) or tuple(sizes) != access.shape or any(start != 0 for start in starts):
            target = self.insert(self.before_loop, tile.RegionOp(target, starts, sizes, kept)).results[0]
        self.insert(self.before_loop, tile.CopyOp(turned, target, atomic=atomic))

    # -- in turn with others ---------------------------------------------------------------------------------------------

    def store_interleaved(self, parts: Sequence[SSAValue | None], target: SSAValue, places: Sequence[IndexSum]) -> None:
        """Emits the store of two or four tiles such that their elements alternate in the rows of a buffer.

        Args:
            parts: the tiles, with the shape of the iteration space. One of two may be None: its elements of the buffer keep
                their values.
            target: the buffer that is stored to.
            places: for each axis of the buffer, the index of the first tile's elements, as an ``IndexSum``.

        Raises:
            NotVectorisableAtOnce: the Vector core cannot interleave the elements, or they are no aligned region.
        """
        ((axis, step),), base = places[-1].terms, places[-1].offset
        assert isinstance(base, int)
        wide = [extent * step if each == axis else extent for each, extent in enumerate(self.extents)]
        kind = dtype_of(element_type_of(target))
        access = self._checked_access(target, (*places[:-1], IndexSum(((axis, 1),), base)), wide).split_axes(wide)
        self._check_all_axes(access, wide)
        order, sizes = access.variables, [wide[place.terms[0][0]] if place.terms else 1 for place in access.places]
        if (order != sorted(order) or order[-1:] != [axis] or not access.is_aligned_region(sizes) or kind.bits < 8
                or not is_dtype_supported("interleave", kind)
                or any(factor != 1 for place in access.places for _, factor in place.terms)):
            raise self.unsupported_error(target, "written")
        region = self._view_of_access(access)
        kept = [position for position, place in enumerate(access.places) if place.terms]
        starts = [place.offset for place in access.places]
        if kept != list(range(len(sizes))) or tuple(sizes) != access.shape or any(start != 0 for start in starts):
            region = self.insert(self.before_loop, tile.RegionOp(region, starts, sizes, kept)).results[0]
        shape = [wide[each] for each in order]
        held = [self._drop_unit_axes(part, order) if part is not None else None for part in parts]
        rates, rows = self.chip.vector, prod(shape[:-1])
        if None in held:
            stays = held.index(None)
            held[stays] = rest = self.allocate(self.before_loop, element_type_of(target), [*shape[:-1], shape[-1] // 2])
            self.insert(self.before_loop, tile.CallOp("deinterleave", [region], [rest], {"index_mode": f"CHANNEL_{stays}"}))
            self.cycles += self.vector_cycles("reducev2", kind.nbytes, shape[-1] // 2, rows) + rates["reducev2"].fixed
        whole = region if space_of(target) != "gm" else self.allocate(self.before_loop, element_type_of(target), shape)
        cycles = self._emit_interleave([part for part in held if part is not None], whole)
        if whole is not region:
            self.uses_other_pipes = True
            self.insert(self.before_loop, tile.CopyOp(whole, region))
        self.record_rearranged("interleave", target, cycles)

    def _drop_unit_axes(self, held: SSAValue, order: Sequence[int]) -> SSAValue:
        shape = tile.shape_of(held)
        if len(order) == len(shape):
            return held
        return self.insert(self.before_loop, tile.RegionOp(held, [0] * len(shape), shape, order)).results[0]

    def _emit_interleave(self, parts: Sequence[SSAValue], target: SSAValue) -> float:
        """Emits the interleaving of two or four tiles into one, as many rows at once as their scratch allows; returns the
        cycles.
        """
        cycles = 0.0
        if len(parts) > 2:
            shape = tile.shape_of(parts[0])
            pairs = [self.allocate(self.before_loop, element_type_of(target), [*shape[:-1], 2 * shape[-1]]) for _ in range(2)]
            for first, pair in enumerate(pairs):
                cycles += self._emit_interleave([parts[first], parts[first + 2]], pair)
            parts = pairs
        shape, nbytes = tile.shape_of(parts[0]), element_bytes(target)
        end, axis, at_once = len(shape) - 1, 0, shape[0]
        while True:
            row = prod(shape[axis + 1:]) * (BLOCK + 2 * nbytes)
            unit = BLOCK if axis == end else 1  # parts of rows must begin at blocks
            fitting = [rows for rows in range(1, shape[axis] + 1) if shape[axis] % rows == 0
                       and rows * row <= INTERLEAVE_SCRATCH
                       and (rows % unit == 0 or rows == shape[axis])]
            at_once = max(fitting, default=shape[axis] if axis == end else 1)
            if axis == end or row <= INTERLEAVE_SCRATCH:
                break
            axis += 1
        turns = [*shape[:axis], shape[axis] // at_once]
        cycles += self.vector_cycles("gather", nbytes, 2 * shape[-1], prod(shape[:-1])) + self.chip.vector["gather"].fixed
        if prod(turns) == 1:
            self.insert(self.before_loop, tile.CallOp("interleave", parts, [target]))
            return cycles
        point, rows = self.emit_loops(range(len(turns)), turns)
        starts = [self.emit_product(point, rows[each], at_once if each == axis else 1) for each in range(len(turns))]
        offsets, sizes = [*starts, *([0] * (end - axis))], [*([1] * axis), at_once, *shape[axis + 1:]]
        kept = [each for each in range(len(shape)) if sizes[each] != 1 or each == end]
        halves = [self.insert(point, tile.RegionOp(part, offsets, sizes, kept)).results[0] for part in parts]
        doubled = [*offsets[:-1], self.emit_product(point, offsets[-1], 2)]
        there = self.insert(point, tile.RegionOp(target, doubled, [*sizes[:-1], 2 * sizes[-1]], kept)).results[0]
        self.insert(point, tile.CallOp("interleave", halves, [there]))
        return cycles + prod(turns) * (4 * self.chip.scalar.issue + 2 * self.chip.scalar.alu)


__all__ = ["INTERLEAVE_SCRATCH", "Detours", "Interleaving", "find_interleavings"]
