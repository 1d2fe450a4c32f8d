"""What a ``T.Parallel`` writes in another order than its own, or between elements that stay (``rearranged`` has the reads)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import memref
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.linear import Linear
from tilelang_npu.target import BLOCK
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.parallel.dependence import never_meet
from tilelang_npu.transforms.tile.parallel.indices import Invariants, Multiples, NotVectorWhole
from tilelang_npu.transforms.tile.parallel.nests import element_of, width_of
from tilelang_npu.transforms.tile.parallel.rearranged import Elements, Rearranged, takes

SCRATCH = 16 << 10
"""Bytes of scratch that one interleave may take."""
CHANNELS = (2, 4)


@dataclass(frozen=True)
class Interleaving:
    """Stores that write all of every second, or every fourth element.

    Attributes:
        stores: in the order of the elements.
        places: what the first one writes.
    """

    stores: tuple[memref.StoreOp, ...]
    places: tuple[Multiples, ...]


def interleavings(loop: tile.ParallelOp, invariants: Invariants, extents: Sequence[int],
                  ranges: Ranges) -> list[Interleaving]:
    """The stores of a loop that write the elements in turn, with nothing between them that reads or writes those."""
    found: list[Interleaving] = []
    begun: dict[tuple[SSAValue, tuple[Multiples, ...]], dict[int, memref.StoreOp]] = {}
    for op in loop.body.block.ops:
        if not isinstance(op, (memref.LoadOp, memref.StoreOp)):
            continue
        places = [invariants.sum(value) for value in op.indices]
        last = places[-1] if places else None
        if isinstance(op, memref.LoadOp):
            for source, written in [key for key in begun if root_of(key[0]) is root_of(op.memref)]:
                if any(not never_meet(places, (*written[:-1], _moved(written[-1], channel)), extents, ranges)
                       for channel in begun[source, written]):
                    del begun[source, written]
            continue
        whole = [place for place in places if place is not None]
        key = None
        if len(whole) == len(places) and last is not None and len(last.terms) == 1 and isinstance(last.offset, int):
            step = last.terms[0][1]
            if step in CHANNELS and tile.ATOMIC not in op.attributes:
                channel = last.offset % step
                key = (op.memref, (*whole[:-1], _moved(last, -channel)))
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


def _moved(place: Multiples, by: int) -> Multiples:
    assert isinstance(place.offset, int)
    return Multiples(place.terms, place.offset + by, Linear(place.offset + by))


class Between(Rearranged):
    """The detours of one loop, those to where it writes included."""

    def put_elsewhere(self, held: SSAValue, target: SSAValue, places: Sequence[Multiples], *, adds: bool) -> None:
        """Write a tile of the box's shape where an access says that is no rectangle in its order.

        Raises:
            NotVectorWhole: nothing moves elements so.
        """
        access = self._within(target, places, self.extents)
        parts = access.split(self.extents)
        self._check_each(parts, self.extents)
        last = access.places[-1]
        if all(len(place.terms) <= 1 and all(abs(factor) == 1 for _, factor in place.terms) for place in parts.places):
            self._put_turned(held, parts, adds=adds)
        elif space_of(target) == "gm" or adds:
            raise self.no_way(target, "written")
        elif len(last.terms) == 1 and last.terms[0][1] == 2 and isinstance(last.offset, int):
            channel = last.offset % 2
            base = (*access.places[:-1], Multiples(last.terms, last.offset - channel))
            self.put_in_turn([held if each == channel else None for each in range(2)], target, base)
        else:
            self.crosses = True
            self.tell_moved("the scalar unit", target, self.move_elements(held, target, access.places, write=True))

    def _check_each(self, access: Elements, box: Sequence[int]) -> None:
        axes = access.variables
        if sorted(set(axes)) != [axis for axis, extent in enumerate(box) if extent != 1]:
            msg = "a store does not use every loop variable"
            edit = "let each point write an element of its own, and reduce them behind the loop (T.reduce_sum and the like)"
            raise NotVectorWhole(msg, edit)
        if len(axes) != len(set(axes)) or any(len(place.terms) > 1 for place in access.places):
            raise self.no_way(access.source, "written")

    # -- in another order ----------------------------------------------------------------------------------------------

    def _put_turned(self, held: SSAValue, access: Elements, *, adds: bool) -> None:
        order = access.variables
        box = [self.extents[axis] for axis in order]
        starts: list[SSAValue | int] = []
        back: list[Multiples] = [Multiples((), 0) for _ in self.extents]
        for place in access.places:
            for axis, factor in place.terms:
                back[axis] = Multiples(((order.index(axis), factor),), 0 if factor == 1 else self.extents[axis] - 1)
            end = sum(self.extents[axis] - 1 for axis, factor in place.terms if factor == -1)
            starts.append(self.sum(self.front, place.offset, -end))
        sizes = [self.extents[place.terms[0][0]] if place.terms else 1 for place in access.places]
        here = space_of(access.source) != "gm"
        self.crosses = self.crosses or not here
        if not Elements(access.source, access.shape, tuple(
                Multiples(place.terms, start) for place, start in zip(access.places, starts, strict=True))).begins(sizes):
            raise self.no_way(access.source, "written")
        flat = None
        strides = self.strides(access.source) if here and not adds else None
        if strides is not None and tuple(sizes) == access.shape and prod(tile.shape_of(access.source)) == prod(sizes) and (
                len(strides) == 1 or strides[-2] == tile.shape_of(access.source)[-1]):
            flat = self._as(self.front, access.source, [prod(sizes)])
        source = Elements(held, tile.shape_of(held), tuple(back))
        if not isinstance(held.owner, tile.AllocOp) and self.by_parts(source, box, None) is None:
            beside = self.made(self.front, element_of(held), tile.shape_of(held))
            self.insert(self.front, tile.CopyOp(held, beside))
            source = Elements(beside, tile.shape_of(beside), tuple(back))
        way = self.best(source, box, flat=flat)
        self.tell_moved(way.how, access.source, way.cycles)
        turned = way.build()
        if flat is not None and turned is flat:
            return
        if flat is not None and isinstance(flat.owner, tile.ViewOp) and not list(flat.uses):
            Rewriter.erase_op(flat.owner)
        target = self._seen(access)
        kept = [position for position, place in enumerate(access.places) if place.terms]
        if kept != list(range(len(sizes))) or tuple(sizes) != access.shape or any(start != 0 for start in starts):
            target = self.insert(self.front, tile.RegionOp(target, starts, sizes, kept)).results[0]
        self.insert(self.front, tile.CopyOp(turned, target, atomic=adds))

    # -- in turn with others ---------------------------------------------------------------------------------------------

    def put_in_turn(self, parts: Sequence[SSAValue | None], target: SSAValue, places: Sequence[Multiples]) -> None:
        """Write tiles of the box's shape as the elements of rows in turn; what stays is None, one of two at most.

        Args:
            parts: the tiles.
            target: the buffer.
            places: what the first of them writes.
        """
        ((axis, step),), base = places[-1].terms, places[-1].offset
        assert isinstance(base, int)
        wide = [extent * step if each == axis else extent for each, extent in enumerate(self.extents)]
        kind = dtype_of(element_of(target))
        access = self._within(target, (*places[:-1], Multiples(((axis, 1),), base)), wide).split(wide)
        self._check_each(access, wide)
        order, sizes = access.variables, [wide[place.terms[0][0]] if place.terms else 1 for place in access.places]
        if (order != sorted(order) or order[-1:] != [axis] or not access.begins(sizes) or kind.bits < 8
                or not takes("interleave", kind) or any(factor != 1 for place in access.places for _, factor in place.terms)):
            raise self.no_way(target, "written")
        region = self._seen(access)
        kept = [position for position, place in enumerate(access.places) if place.terms]
        starts = [place.offset for place in access.places]
        if kept != list(range(len(sizes))) or tuple(sizes) != access.shape or any(start != 0 for start in starts):
            region = self.insert(self.front, tile.RegionOp(region, starts, sizes, kept)).results[0]
        shape = [wide[each] for each in order]
        held = [self._without_units(part, order) if part is not None else None for part in parts]
        rates, rows = self.chip.vector, prod(shape[:-1])
        if None in held:
            stays = held.index(None)
            held[stays] = rest = self.made(self.front, element_of(target), [*shape[:-1], shape[-1] // 2])
            self.insert(self.front, tile.CallOp("deinterleave", [region], [rest], {"index_mode": f"CHANNEL_{stays}"}))
            self.cycles += self.vector_cycles("reducev2", kind.nbytes, shape[-1] // 2, rows) + rates["reducev2"].fixed
        whole = region if space_of(target) != "gm" else self.made(self.front, element_of(target), shape)
        cycles = self._interleave([part for part in held if part is not None], whole)
        if whole is not region:
            self.crosses = True
            self.insert(self.front, tile.CopyOp(whole, region))
        self.tell_moved("interleave", target, cycles)

    def _without_units(self, held: SSAValue, order: Sequence[int]) -> SSAValue:
        shape = tile.shape_of(held)
        if len(order) == len(shape):
            return held
        return self.insert(self.front, tile.RegionOp(held, [0] * len(shape), shape, order)).results[0]

    def _interleave(self, parts: Sequence[SSAValue], target: SSAValue) -> float:
        """Two or four tiles into one; as many rows at once as their scratch allows."""
        cycles = 0.0
        if len(parts) > 2:
            shape = tile.shape_of(parts[0])
            pairs = [self.made(self.front, element_of(target), [*shape[:-1], 2 * shape[-1]]) for _ in range(2)]
            for first, pair in enumerate(pairs):
                cycles += self._interleave([parts[first], parts[first + 2]], pair)
            parts = pairs
        shape, nbytes = tile.shape_of(parts[0]), width_of(target)
        end, axis, at_once = len(shape) - 1, 0, shape[0]
        while True:
            row = prod(shape[axis + 1:]) * (BLOCK + 2 * nbytes)
            unit = BLOCK if axis == end else 1  # pieces of rows begin at blocks
            fitting = [rows for rows in range(1, shape[axis] + 1) if shape[axis] % rows == 0 and rows * row <= SCRATCH
                       and (rows % unit == 0 or rows == shape[axis])]
            at_once = max(fitting, default=shape[axis] if axis == end else 1)
            if axis == end or row <= SCRATCH:
                break
            axis += 1
        turns = [*shape[:axis], shape[axis] // at_once]
        cycles += self.vector_cycles("gather", nbytes, 2 * shape[-1], prod(shape[:-1])) + self.chip.vector["gather"].fixed
        if prod(turns) == 1:
            self.insert(self.front, tile.CallOp("interleave", parts, [target]))
            return cycles
        point, rows = self.nest(range(len(turns)), turns)
        starts = [self.times(point, rows[each], at_once if each == axis else 1) for each in range(len(turns))]
        offsets, sizes = [*starts, *([0] * (end - axis))], [*([1] * axis), at_once, *shape[axis + 1:]]
        kept = [each for each in range(len(shape)) if sizes[each] != 1 or each == end]
        halves = [self.insert(point, tile.RegionOp(part, offsets, sizes, kept)).results[0] for part in parts]
        doubled = [*offsets[:-1], self.times(point, offsets[-1], 2)]
        there = self.insert(point, tile.RegionOp(target, doubled, [*sizes[:-1], 2 * sizes[-1]], kept)).results[0]
        self.insert(point, tile.CallOp("interleave", halves, [there]))
        return cycles + prod(turns) * (4 * self.chip.scalar.issue + 2 * self.chip.scalar.alu)


__all__ = ["SCRATCH", "Between", "Interleaving", "interleavings"]
