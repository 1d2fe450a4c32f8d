"""Accesses of a ``T.Parallel`` that are no rectangle in the order of its axes: ``x[i, 2 * j + 1]``, ``a[j, i]``, ``x[9 - j]``,
``y[2 * i + p, j]``, ``x[i // 2]``.

An axis of a tile that is counted through in steps is two axes of the same bytes (``Elements.split``), which makes rectangles of
every second row and of the digits of ``2 * i + p``. What is left takes an operation that moves elements, into a tile in the
order of the box: ``deinterleave`` takes every second or fourth element of rows, ``transpose`` swaps axes, ``gather`` takes
elements of anywhere, by numbers that are computed in front. Data in GM comes to UB first, as the rectangle that holds it. What
is written in another order is computed in the order of the box and turned round beside the target; ``interleave`` puts it
between the elements that other statements write, or that stay. Which one is by the chip's cycles, against the points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from tilelang_npu import ops
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.target import BLOCK, Chip
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.whole_blocks import ElementPlaces, divisor, is_paddable, places_of
from tilelang_npu.transforms.tile.parallel.indices import Multiples, NotVectorWhole, plain, region_of, with_unit_axes
from tilelang_npu.transforms.tile.parallel.nests import I32, around, called, element_of, width_of
from tilelang_npu.transforms.tile.parallel.unaligned import Unaligned

AT_ONCE = 4096
"""Elements that are gathered at once: their numbers take 16 KiB of UB, and HIVM's gather as much again."""
AROUND = 8
"""How many times the bytes of an access come from GM at most, for the sake of the ones in between."""
RANKS = 3
"""Axes of a tile that HIVM transposes or counts through."""


_Key = tuple[SSAValue, tuple[Multiples | None, ...]]
"""A buffer, and an index for each of its axes."""


@dataclass(frozen=True)
class Elements:
    """Elements of a buffer.

    Attributes:
        source: the buffer.
        shape: what it is seen with.
        places: an index for each axis of that.
    """

    source: SSAValue
    shape: tuple[int, ...]
    places: tuple[Multiples, ...]

    def split(self, extents: Sequence[int]) -> Elements:
        """The same elements with the axes taken apart whose indices have digits: multiples of a number, and the rest below
        it; and all but the last whose index counts in steps."""
        if not isinstance(self.source.owner, tile.AllocOp) and space_of(self.source) != "gm":
            return self
        unit = max(1, BLOCK // width_of(self.source))
        if any(size <= 0 for size in self.shape) or (len(self.shape) > 1 and self.shape[-1] % unit
                                                     and space_of(self.source) != "gm"):
            return self  # rows with gaps have no other shape
        shape, places = list(self.shape), list(self.places)
        axis = 0
        while axis < len(places):
            place, size = places[axis], shape[axis]
            step = place.terms[0][1] if place.terms else 1
            digits = len(place.terms) > 1 or axis < len(places) - 1
            if digits and step > 1 and size % step == 0 and isinstance(place.offset, int) and place.offset >= 0:
                low = Multiples(place.terms[1:], place.offset % step)
                if all(factor > 0 for _, factor in low.terms) and low.bounds(extents)[1] < step:
                    shape[axis:axis + 1] = [size // step, step]
                    places[axis:axis + 1] = [Multiples(((place.terms[0][0], 1),), place.offset // step), low]
            axis += 1
        return Elements(self.source, tuple(shape), tuple(places))

    @property
    def variables(self) -> list[int]:
        """The axes of the box, in the order of the buffer's."""
        return [axis for place in self.places for axis, _ in place.terms]

    def begins(self, sizes: Sequence[int]) -> bool:
        """Whether the rectangle of these sizes at the offsets of the places is one that instructions and DMA take."""
        if space_of(self.source) == "gm":
            return True
        below = places_of(self.source, padded=is_paddable(root_of(self.source)))
        strides = below.strides
        if self.shape != below.sizes:
            strides = tuple(prod(self.shape[axis + 1:]) for axis in range(len(self.shape)))
        start, fixed = below.start, 0
        for place, stride in zip(self.places, strides, strict=True):
            if isinstance(place.offset, int):
                fixed += place.offset * stride
            else:
                start = start and divisor(place.offset) * stride % below.unit == 0
        return ElementPlaces(tuple(sizes), strides, start and fixed % below.unit == 0, below.unit).whole


@dataclass(frozen=True)
class Way:
    """How elements come into the order of the box.

    Attributes:
        cycles: what it takes.
        how: what is told about it; nothing where no element moves.
        build: emits it; a tile with an axis for each of the box, 1 along those that the access does not follow.
    """

    cycles: float
    how: str
    build: Callable[[], SSAValue]


class Rearranged(Unaligned):
    """The detours of one loop to and from elements in another order.

    Attributes:
        moved: what was done with which buffer.
        crosses: whether other pipes than that of vectors have a part in it.
        wanted: the accesses that the loop reads, as buffers and places.
    """

    def __init__(self, loop: tile.ParallelOp, extents: Sequence[int], chip: Chip, wanted: set[_Key]) -> None:
        super().__init__(loop, extents, chip)
        self.moved: list[str] = []
        self.crosses = False
        self.wanted = wanted
        self._halves: dict[tuple[SSAValue, tuple[Multiples | None, ...], int], tuple[SSAValue | None, SSAValue | None]] = {}
        self._landings: dict[tuple[SSAValue, tuple[SSAValue | int, ...], tuple[int, ...]], SSAValue] = {}

    def tell_moved(self, how: str, buffer: SSAValue, cycles: float) -> None:
        """Note a detour."""
        self.cycles += cycles
        if how:  # else it is a rectangle of the same bytes, seen with other axes
            self.moved.append(f"{called(buffer)} by {how}")

    def forget(self, root: SSAValue) -> None:
        """A buffer was written."""
        self._halves = {key: held for key, held in self._halves.items() if root_of(key[0]) is not root}
        self._landings = {key: held for key, held in self._landings.items() if root_of(key[0]) is not root}

    # -- reads ---------------------------------------------------------------------------------------------------------

    def read(self, source: SSAValue, places: Sequence[Multiples]) -> SSAValue:
        """The tile of an access with an axis for each of the box, 1 along those that it does not follow.

        Raises:
            NotVectorWhole: there is no way, or none without more than ``AROUND`` times the bytes from GM.
        """
        access = self._within(source, places, self.extents)
        if space_of(source) == "gm":
            access = self._landed(access.split(self.extents))
            if (found := plain(access.places)) is not None:
                return region_of(self.loop, access.source, found, self.extents)
        way = self.best(access, self.extents, (source, tuple(places)) if isinstance(places[-1].offset, int) else None)
        self.tell_moved(way.how, source, way.cycles)
        return way.build()

    def _within(self, source: SSAValue, places: Sequence[Multiples], box: Sequence[int]) -> Elements:
        """The access without the variables that are 0 alone, checked against the buffer's end."""
        bare = tuple(Multiples(tuple(term for term in place.terms if box[term[0]] != 1), place.offset) for place in places)
        shape = tile.shape_of(source)
        for axis, (place, size) in enumerate(zip(bare, shape, strict=True)):
            low, high = place.bounds(box)
            if isinstance(place.offset, int) and (low < 0 or (high >= size > 0)):
                msg = f"an access to {called(source)} reaches from {low} to {high} of axis {axis}, which has {size} elements"
                raise NotVectorWhole(msg, "let the loop run over the points that have an element")
        return Elements(source, shape, bare)

    def _landed(self, access: Elements) -> Elements:
        """The rectangle of a tensor in GM that holds an access, in UB."""
        starts, sizes, rest = list[SSAValue | int](), list[int](), list[Multiples]()
        for axis, (place, have) in enumerate(zip(access.places, access.shape, strict=True)):
            low, high = place.bounds(self.extents)
            if isinstance(place.offset, int):
                step = place.terms[0][1] if len(place.terms) == 1 else 1
                end = high + 1
                if axis == len(access.shape) - 1 and step > 1:  # whole groups of which one is taken
                    low -= low % step
                    end = low + self.extents[place.terms[0][0]] * step
                    end = end if end <= have else high + 1
                starts.append(low)
                sizes.append(end - low)
                rest.append(Multiples(place.terms, place.offset - low))
            else:
                starts.append(self.sum(self.front, place.offset, low))
                sizes.append(high - low + 1)
                rest.append(Multiples(place.terms, -low))
        points = self.points(sorted(set(access.variables)))
        if prod(sizes) > AROUND * points:
            shape = "x".join(map(str, sizes))
            msg = (f"{points} elements of {called(access.source)} are spread over {shape} in GM, too far to load what is in"
                   " between")
            raise NotVectorWhole(msg, f"T.copy the {shape} tile to UB, and read that; or a row at a time in a loop of T.serial")
        known = self._landings.get((access.source, tuple(starts), tuple(sizes)))
        if known is not None:
            return Elements(known, tile.shape_of(known), tuple(rest))
        unit = max(1, BLOCK // width_of(access.source))
        whole = self.made(self.front, element_of(access.source), [*sizes[:-1], ceil(sizes[-1] / unit) * unit])
        part = self.part(whole, sizes)
        source = self._seen(access)
        if sizes != list(access.shape) or any(start != 0 for start in starts):
            source = self.insert(self.front, tile.RegionOp(source, starts, sizes, range(len(sizes)))).results[0]
        self.insert(self.front, tile.CopyOp(source, part))
        self.crosses = True
        self._landings[access.source, tuple(starts), tuple(sizes)] = whole
        return Elements(whole, tile.shape_of(whole), tuple(rest))

    def _seen(self, access: Elements) -> SSAValue:
        """The buffer with the shape of an access."""
        return self._as(self.front, access.source, access.shape)

    def _as(self, point: InsertPoint, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        kind = value.type
        assert isinstance(kind, MemRefType)
        if tile.shape_of(value) == tuple(shape):
            return value
        seen = MemRefType(kind.element_type, shape, memory_space=kind.memory_space)
        return self.insert(point, tile.ViewOp(value, seen)).results[0]

    def part(self, whole: SSAValue, sizes: Sequence[int]) -> SSAValue:
        """The first elements along each axis."""
        if tuple(sizes) == tile.shape_of(whole):
            return whole
        return self.insert(self.front, tile.RegionOp(whole, [0] * len(sizes), sizes, range(len(sizes)))).results[0]

    def best(self, access: Elements, box: Sequence[int], key: _Key | None = None,
              flat: SSAValue | None = None) -> Way:
        """The way that takes the fewest cycles."""
        ways = [self.by_parts(access.split(box), box, key), self._from_anywhere(access, box, flat)]
        if box is self.extents:
            ways += [self._by_row_gathers(access), self._by_elements(access)]
        found = [way for way in ways if way is not None]
        if not found:
            raise self.no_way(access.source, "read")
        return min(found, key=lambda way: way.cycles)

    def no_way(self, buffer: SSAValue, verb: str) -> NotVectorWhole:
        """That nothing moves the elements of a buffer."""
        shape = "x".join(map(str, tile.shape_of(buffer)))
        msg = (f"{called(buffer)} ({dtype_of(element_of(buffer))} {shape}) is {verb} in another order than the points', and "
               "no vector operation takes its elements so")
        if verb == "read":
            edit = "put them in order first: T.vtranspose swaps axes, T.vdeinterleave takes every second element, T.vgather any"
        else:
            edit = ("write a tile in the order of the loop, and move it behind: T.vtranspose swaps axes, T.vinterleave merges"
                    " two tiles; or write all elements in between in the same loop")
        return NotVectorWhole(msg, edit)

    # -- a rectangle, every second or fourth element of its rows, axes swapped --------------------------------------------

    def by_parts(self, access: Elements, box: Sequence[int], key: _Key | None) -> Way | None:
        """A rectangle of rows, every second or fourth of their elements, axes swapped."""
        *outer, last = access.places
        variables = access.variables
        if any(len(place.terms) > 1 or (place.terms and place.terms[0][1] != 1) for place in access.places[:-1]):
            return None
        if len(last.terms) != 1 or len(set(variables)) != len(variables):
            return None
        count, step = box[last.terms[0][0]], last.terms[0][1]
        swaps = _swaps(variables)
        if step not in (1, 2, 4) or (step > 1 and not isinstance(last.offset, int)) or len(swaps) > 2:
            return None
        channel = last.offset % step if isinstance(last.offset, int) and step > 1 else 0
        start = last.offset - channel if isinstance(last.offset, int) else last.offset
        whole = Elements(access.source, access.shape, (*outer, Multiples(last.terms, start)))
        sizes = [box[place.terms[0][0]] if place.terms else 1 for place in outer] + [count * step]
        if (isinstance(start, int) and start + count * step > access.shape[-1]) or not whole.begins(sizes):
            return None
        kind, total = dtype_of(element_of(access.source)), prod(sizes) // step
        if kind.bits < 8 or (step > 1 and not takes("deinterleave", kind)) or (swaps and (
                not takes("transpose", kind) or len(variables) > RANKS)):
            return None
        cycles, rows = 0.0, prod(sizes[:-1])
        rates = self.chip.vector
        shared = len(self._channels(key, step)) if step > 1 else 1
        for level in range(step.bit_length() - 1):
            cycles += (self.vector_cycles("reducev2", kind.nbytes, count * step >> level + 1, rows)
                       + rates["reducev2"].fixed) / min(2, shared)
        cycles += len(swaps) * (self.vector_cycles("nchwconv", kind.nbytes, total) + rates["nchwconv"].fixed
                                + self.vector_cycles("copy", kind.nbytes, total) + rates["copy"].fixed)
        names = ["deinterleave"] * (step > 1) + ["transpose"] * bool(swaps)

        def build() -> SSAValue:
            offsets = [place.offset for place in whole.places]
            kept = [position for position, place in enumerate(whole.places) if place.terms]
            found = self._seen(access)
            if kept != list(range(len(sizes))) or tuple(sizes) != access.shape or any(offset != 0 for offset in offsets):
                found = self.insert(self.front, tile.RegionOp(found, offsets, sizes, kept)).results[0]
            order = list(variables)
            if step > 1:
                found = self._channel(found, key, step, channel)
            for one, two in swaps:
                found = self._swapped(found, one, two)
                order[one], order[two] = order[two], order[one]
            return with_unit_axes(self.loop, found, order, box)

        return Way(cycles, " and ".join(names), build)

    def _channels(self, key: _Key | None, step: int) -> set[int]:
        """Which of every ``step`` elements the loop reads beside those of an access, and those."""
        if key is None:
            return {0}
        source, (*outer, last) = key
        assert last is not None and isinstance(last.offset, int)
        first = last.offset - last.offset % step
        return {other for other in range(step) if (source, (*outer, Multiples(last.terms, first + other))) in self.wanted}

    def _channel(self, rows: SSAValue, key: _Key | None, step: int, channel: int) -> SSAValue:
        """Every ``step``-th element of rows, from ``channel`` on; the other ones that the loop reads come along."""
        base, wanted = None, {channel, *self._channels(key, step)}
        if key is not None:
            source, (*outer, last) = key
            assert last is not None and isinstance(last.offset, int)
            base = (source, (*outer, Multiples(last.terms, last.offset - channel)))
        size, origin = 2, 0
        while size <= step:
            bit = (channel // (size // 2)) % 2
            name = (*base, size * step + origin) if base is not None else None
            known = self._halves.get(name) if name is not None else None
            if known is None:
                shape = tile.shape_of(rows)
                here = {other // (size // 2) % 2 for other in wanted if other % (size // 2) == origin}
                made = [self.made(self.front, element_of(rows), [*shape[:-1], shape[-1] // 2]) if each in here else None
                        for each in range(2)]
                mode = "ALL_CHANNELS" if len(here) == 2 else f"CHANNEL_{bit}"
                outs = [each for each in made if each is not None]
                self.insert(self.front, tile.CallOp("deinterleave", [rows], outs, {"index_mode": mode}))
                known = (made[0], made[1])
                if name is not None:
                    self._halves[name] = known
            half = known[bit]
            assert half is not None
            rows, origin, size = half, origin + bit * (size // 2), size * 2
        return rows

    def _swapped(self, source: SSAValue, one: int, two: int) -> SSAValue:
        """Two axes swapped; in whole squares of what the unit takes where the last one is of them."""
        shape = list(tile.shape_of(source))
        order = list(range(len(shape)))
        order[one], order[two] = two, one
        padded, nbytes = list(shape), width_of(source)
        if two == len(shape) - 1:
            padded[one] = ceil(shape[one] / max(16, BLOCK // nbytes)) * max(16, BLOCK // nbytes)
        padded[-1] = ceil(padded[-1] / max(1, BLOCK // nbytes)) * max(1, BLOCK // nbytes)
        if padded != shape:
            beside = self.made(self.front, element_of(source), padded)
            self.insert(self.front, tile.CopyOp(source, self.part(beside, shape)))
            source = beside
        target = self.made(self.front, element_of(source), [padded[axis] for axis in order])
        self.insert(self.front, tile.CallOp("transpose", [source], [target], {"permutation": order}))
        return self.part(target, [shape[axis] for axis in order])

    # -- elements from anywhere ------------------------------------------------------------------------------------------

    def strides(self, source: SSAValue) -> tuple[int, ...] | None:
        """Elements from one to the next along each axis of a buffer that is seen as one row; None where it cannot be."""
        shape, nbytes = tile.shape_of(source), width_of(source)
        if not isinstance(source.owner, tile.AllocOp) or any(size <= 0 for size in shape):
            return None
        pitch = shape[-1]
        if len(shape) > 1 and pitch * nbytes % BLOCK:
            if not is_paddable(root_of(source)):
                return None
            pitch = ceil(pitch * nbytes / BLOCK) * BLOCK // nbytes
        return (*(prod(shape[axis + 1:-1]) * pitch for axis in range(len(shape) - 1)), 1)

    def as_row(self, source: SSAValue) -> tuple[SSAValue, float]:
        """A buffer as one row, and what it takes: one whose rows have gaps is copied with them."""
        shape, strides = tile.shape_of(source), self.strides(source)
        assert strides is not None
        cycles = 0.0
        if len(shape) > 1 and strides[-2] != shape[-1]:
            beside = self.made(self.front, element_of(source), [*shape[:-1], strides[-2]])
            self.insert(self.front, tile.CopyOp(source, self.part(beside, shape)))
            source, cycles = beside, self.vector_cycles("copy", width_of(source), shape[-1], prod(shape[:-1]))
        return self._as(self.front, source, [prod(tile.shape_of(source))]), cycles

    def _from_anywhere(self, access: Elements, box: Sequence[int], flat: SSAValue | None) -> Way | None:
        """Gathered by the numbers of the elements, which count evenly along each axis."""
        kind, strides = dtype_of(element_of(access.source)), self.strides(access.source)
        if strides is None or not takes("gather", kind):
            return None
        steps = [0] * len(box)
        for place, stride in zip(access.places, strides, strict=True):
            for axis, factor in place.terms:
                steps[axis] += factor * stride
        followed = [axis for axis in range(len(box)) if axis in access.variables]
        if not followed:
            return None
        unit = max(8, BLOCK // kind.nbytes)
        row = ceil(box[followed[-1]] / unit) * unit if len(followed) > 1 and flat is None else box[followed[-1]]
        sizes = [*(box[axis] for axis in followed[:-1]), row]
        outer = 0
        while outer < len(sizes) - 1 and (prod(sizes[outer:]) > AT_ONCE or len(sizes) - outer > RANKS
                                          or (outer and prod(sizes[outer:]) * kind.nbytes % BLOCK)):
            outer += 1
        if outer and prod(sizes[outer:]) * kind.nbytes % BLOCK:
            return None
        inner, times = prod(sizes[outer:]), prod(sizes[:outer])
        rates = self.chip.vector
        each = self.vector_cycles("gather", kind.nbytes, inner) + 4 * self.chip.scalar.issue
        if outer:
            each += self.vector_cycles("add", 4, inner) + rates["adds"].fixed + rates["gather"].fixed
        cycles = times * each + rates["dup"].fixed + rates["gather"].fixed + self.vector_cycles("dup", 4, inner)

        def build() -> SSAValue:
            window, _ = self.as_row(access.source)
            offset: SSAValue | int = 0
            for place, stride in zip(access.places, strides, strict=True):
                offset = self.sum(self.front, offset, self.times(self.front, place.offset, stride))
            numbers = self.made(self.front, I32, sizes[outer:])
            self.count(self.front, offset, numbers, *(steps[axis] for axis in followed[outer:]))
            if row != box[followed[-1]]:
                ways = [steps[axis] * (box[axis] - 1) for axis in followed[:outer]]  # from the first row to the last
                least, most = sum(min(way, 0) for way in ways), sum(max(way, 0) for way in ways)
                self.bounded(numbers, prod(tile.shape_of(window)), least, most)
            target = flat if flat is not None else self.made(self.front, element_of(access.source), sizes)
            shifted = self.made(self.front, I32, sizes[outer:]) if outer else numbers
            point, rows = self.nest(followed[:outer], box)
            if outer:
                at = self.position(point, Multiples(tuple((axis, steps[axis]) for axis in followed[:outer]), 0), rows)
                by = self.insert(point, arith.IndexCastOp(self.index(point, at), I32)).results[0]
                self.insert(point, tile.ElementwiseOp("add", [numbers, by], shifted))
            here = target
            if flat is not None and outer:
                first: SSAValue | int = 0
                for position, axis in enumerate(followed[:outer]):
                    first = self.sum(point, first, self.times(point, rows[axis], prod(sizes[position + 1:])))
                here = self.insert(point, tile.RegionOp(flat, [first], [inner], [0])).results[0]
            elif outer:
                offsets = [rows[axis] if place < outer else 0 for place, axis in enumerate(followed)]
                kept = range(outer, len(sizes))
                here = self.insert(point, tile.RegionOp(target, offsets, [1] * outer + sizes[outer:], kept)).results[0]
            self.insert(point, tile.CallOp("gather", [window, self._as(point, shifted, [inner])],
                                           [self._as(point, here, [inner])]))
            if flat is not None:
                return flat
            return with_unit_axes(self.loop, self.part(target, [box[axis] for axis in followed]), followed, box)

        return Way(cycles, "gather", build)

    # -- elements whose numbers are computed -----------------------------------------------------------------------------

    def numbered_cycles(self, nbytes: int) -> tuple[float, list[int]]:
        """What it takes to gather an element a point by numbers in a tile, and the shape of that."""
        unit = max(8, BLOCK // nbytes)
        row = ceil(self.extents[-1] / unit) * unit if len(self.extents) > 1 else self.extents[-1]
        sizes = [*self.extents[:-1], row]
        cycles = self.vector_cycles("gather", nbytes, prod(sizes)) + 3 * self.vector_cycles("add", 4, prod(sizes))
        return cycles + self.chip.vector["gather"].fixed + 3 * self.chip.vector["adds"].fixed, sizes

    def rows_of_copies(self, nbytes: int) -> float:
        """What it takes to copy rows one by one whose numbers are read."""
        copy, unit = self.chip.vector["copy"], self.chip.scalar
        row = self.vector_cycles("copy", nbytes, self.extents[-1]) + copy.issue + unit.load + unit.issue + around(self.chip)
        return self.points(range(len(self.extents) - 1)) * row + copy.fixed

    def gather(self, source: SSAValue, numbers: SSAValue, cycles: float) -> SSAValue:
        """The elements of a buffer that a tile numbers, over the box; some rows at once."""
        window, copied = self.as_row(source)
        sizes = list(tile.shape_of(numbers))
        target = self.made(self.front, element_of(source), sizes)
        unit = max(8, BLOCK // width_of(source))
        outer = 0
        while outer < len(sizes) - 1 and prod(sizes[outer:]) > AT_ONCE:
            outer += 1
        if outer and prod(sizes[outer:]) % unit:
            outer = 0
        point, rows = self.nest(range(outer), sizes)
        inner = prod(sizes[outer:])
        here = []
        for held in (numbers, target):
            if outer:
                offsets = [rows[axis] if axis < outer else 0 for axis in range(len(sizes))]
                kept = range(outer, len(sizes))
                held = self.insert(point, tile.RegionOp(held, offsets, [1] * outer + sizes[outer:], kept)).results[0]
            here.append(self._as(point, held, [inner]))
        self.insert(point, tile.CallOp("gather", [window, here[0]], [here[1]]))
        self.tell_moved("gather", source, cycles + copied)
        return self.part(target, self.extents)

    def bounded(self, numbers: SSAValue, count: int, least: int, most: int) -> None:
        """Keep numbers of elements inside a row, also when ``least`` to ``most`` is added to them; those behind the ends of the
        box are of no element."""
        for name, bound in (("max", -least), ("min", count - 1 - most)):
            limit = self.insert(self.front, arith.ConstantOp(IntegerAttr(bound, 32))).results[0]
            self.insert(self.front, tile.ElementwiseOp(name, [numbers, limit], numbers))

    # -- rows and elements -------------------------------------------------------------------------------------------------

    def _landing(self, access: Elements) -> SSAValue:
        shape = [extent if axis in access.variables else 1 for axis, extent in enumerate(self.extents)]
        return self.made(self.front, element_of(access.source), shape)

    def _by_row_gathers(self, access: Elements) -> Way | None:
        cycles = self.rows_cycles(access.source, access.places, "gather")
        last = access.places[-1].terms
        if cycles is None or last[0][0] != max(access.variables) or access.variables.count(last[0][0]) > 1:
            return None
        outer = sorted({axis for place in access.places[:-1] for axis, _ in place.terms})

        def build() -> SSAValue:
            landing = self._landing(access)
            self.gathered(access.source, access.places, landing)
            return landing

        return Way(self.points(outer) * (cycles + len(outer) * 2), "gather of each row", build)

    def _by_elements(self, access: Elements) -> Way:
        def build() -> SSAValue:
            landing = self._landing(access)
            self.crosses = True
            self.move_elements(landing, access.source, access.places, write=False)
            return landing

        return Way(self.points(sorted(set(access.variables))) * self.element_cycles(), "the scalar unit", build)


def _swaps(variables: Sequence[int]) -> list[tuple[int, int]]:
    """The swaps of two places each that bring numbers into order, the later place second."""
    found, order = list[tuple[int, int]](), list(variables)
    for place, wanted in enumerate(sorted(order)):
        if order[place] != wanted:
            other = order.index(wanted)
            found.append((place, other))
            order[place], order[other] = order[other], order[place]
    return found


def takes(name: str, kind: ops.DType) -> bool:
    """Whether an operation that moves elements takes them of a type."""
    entry = ops.operation(name)
    assert isinstance(entry, ops.Structured)
    return kind in entry.dtypes


__all__ = ["Elements", "Rearranged", "takes"]
