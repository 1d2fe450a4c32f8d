"""Emits detours for loads of a ``T.Parallel`` whose elements, in the order of the loop, are no region of the buffer.

Examples are ``x[i, 2 * j + 1]``, ``a[j, i]``, ``x[9 - j]``, ``y[2 * i + p, j]`` and ``x[i // 2]``.

An axis that is accessed with a step is viewed as two axes of the same bytes (``ElementAccess.split_axes``). Every second row,
and indices such as ``2 * i + p``, are then regions of the view. For the other accesses, an operation moves the elements into a
tile in the order of the loop: ``deinterleave`` selects every second or fourth element of rows, ``transpose`` swaps axes, and
``gather`` selects any elements by computed element numbers. Data in GM is first copied to UB, as the smallest region that
contains all accessed elements. Of the possible operations, those with the fewest cycles on the chip are used.

``rearranged_stores`` emits the detours for stores.
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
from tilelang_npu.analysis.block_alignment import ElementLayout, divisor, is_paddable, places_of
from tilelang_npu.analysis.buffer_sizes import buffer_name
from tilelang_npu.analysis.buffers import element_bytes, element_type_of, root_of, space_of
from tilelang_npu.analysis.index_sums import IndexSum, region_indices
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.target import BLOCK, Chip
from tilelang_npu.transforms.tile.vectorise_parallel.detours import (
    I32,
    scalar_loop_cycles,
)
from tilelang_npu.transforms.tile.vectorise_parallel.indices import NotVectorisableAtOnce, add_unit_axes, region_of
from tilelang_npu.transforms.tile.vectorise_parallel.unaligned import UnalignedAccesses

_MOST_GATHERED = 4096
"""The most elements that one gather takes: their int32 numbers take 16 KiB of UB, and HIVM's gather as much again."""
_MOST_OVERHEAD = 8
"""The most bytes that are loaded from GM, as a multiple of the bytes of the access."""
_MOST_AXES = 3
"""The most axes of a tile that HIVM transposes or numbers."""


_Key = tuple[SSAValue, tuple[IndexSum | None, ...]]
"""A buffer, and the index sum of each axis."""


@dataclass(frozen=True)
class ElementAccess:
    """The elements of a buffer that the points of a loop access.

    Attributes:
        source: the buffer.
        shape: the shape in which the buffer is viewed.
        places: for each axis of ``shape``, the index of the access as an ``IndexSum``: multiples of loop variables plus an
            offset.
    """

    source: SSAValue
    shape: tuple[int, ...]
    places: tuple[IndexSum, ...]

    def split_axes(self, extents: Sequence[int]) -> ElementAccess:
        """Returns the same elements as an access to a view of the buffer with more axes.

        An axis with the index ``2 * i + p``, where p is below 2, is split into two axes with the indices ``i`` and ``p``, the
        second of size 2. An axis is split if its index has several terms, or if it is not the last axis and its index has a
        factor. If no axis can be split, the access itself is returned.

        Args:
            extents: the sizes of the iteration space.
        """
        if not isinstance(self.source.owner, tile.AllocOp) and space_of(self.source) != "gm":
            return self
        unit = max(1, BLOCK // element_bytes(self.source))
        if any(size <= 0 for size in self.shape) or (len(self.shape) > 1 and self.shape[-1] % unit
                                                     and space_of(self.source) != "gm"):
            return self  # a buffer with padded rows has no other shape
        shape, places = list(self.shape), list(self.places)
        axis = 0
        while axis < len(places):
            place, size = places[axis], shape[axis]
            step = place.terms[0][1] if place.terms else 1
            digits = len(place.terms) > 1 or axis < len(places) - 1
            if digits and step > 1 and size % step == 0 and isinstance(place.offset, int) and place.offset >= 0:
                low = IndexSum(place.terms[1:], place.offset % step)
                if all(factor > 0 for _, factor in low.terms) and low.bounds(extents)[1] < step:
                    shape[axis:axis + 1] = [size // step, step]
                    places[axis:axis + 1] = [IndexSum(((place.terms[0][0], 1),), place.offset // step), low]
            axis += 1
        return ElementAccess(self.source, tuple(shape), tuple(places))

    @property
    def variables(self) -> list[int]:
        """The axes of the iteration space whose variables occur in the indices, in the order of the view's axes."""
        return [axis for place in self.places for axis, _ in place.terms]

    def is_aligned_region(self, sizes: Sequence[int]) -> bool:
        """Whether vector instructions and DMA can access the region that begins at the offsets of the access.

        Args:
            sizes: the sizes of the region, one per axis of ``shape``.
        """
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
        return ElementLayout(tuple(sizes), strides, start and fixed % below.unit == 0, below.unit).whole


@dataclass(frozen=True)
class Rearrangement:
    """A sequence of operations that brings the elements of an access into the order of the loop.

    Attributes:
        cycles: the cycles that the operations take.
        description: the names of the operations, as text for remarks; empty where no element is moved.
        build: a function that emits the operations and returns the tile with the elements. The tile has the rank of the
            iteration space, and size 1 along axes that the access does not use.
    """

    cycles: float
    description: str
    build: Callable[[], SSAValue]


class RearrangedLoads(UnalignedAccesses):
    """Emits the detours of one loop for loads in another order than that of the loop.

    Attributes:
        rearranged: for each detour, a text with the name of the buffer and the operations.
        uses_other_pipes: whether a detour uses other pipes than the vector pipe.
        loaded: all accesses that the loop loads, as pairs of a buffer and index sums.
    """

    def __init__(self, loop: tile.ParallelOp, extents: Sequence[int], chip: Chip, wanted: set[_Key]) -> None:
        super().__init__(loop, extents, chip)
        self.rearranged: list[str] = []
        self.uses_other_pipes = False
        self.loaded = wanted
        self._deinterleaved: dict[tuple[SSAValue, tuple[IndexSum | None, ...], int],
                                  tuple[SSAValue | None, SSAValue | None]] = {}
        self._tiles_from_gm: dict[tuple[SSAValue, tuple[SSAValue | int, ...], tuple[int, ...]], SSAValue] = {}

    def record_rearranged(self, how: str, buffer: SSAValue, cycles: float) -> None:
        """Records a detour of a rearranged access in ``rearranged`` and ``cycles``.

        Args:
            how: the operations, as text; empty where no element is moved.
            buffer: the accessed buffer.
            cycles: the cycles of the detour.
        """
        self.cycles += cycles
        if how:  # otherwise it is a region of the same bytes, viewed with other axes
            self.rearranged.append(f"{buffer_name(buffer)} with {how}")

    def invalidate(self, root: SSAValue) -> None:
        """Removes the tiles with elements of a buffer from the cached ones, because the buffer is stored to."""
        self._deinterleaved = {key: held for key, held in self._deinterleaved.items() if root_of(key[0]) is not root}
        self._tiles_from_gm = {key: held for key, held in self._tiles_from_gm.items() if root_of(key[0]) is not root}

    # -- reads ---------------------------------------------------------------------------------------------------------

    def load_rearranged(self, source: SSAValue, places: Sequence[IndexSum]) -> SSAValue:
        """Emits the detour of a load; returns the tile with the loaded elements.

        The tile has the rank of the iteration space, and size 1 along axes that the access does not use.

        Args:
            source: the loaded buffer.
            places: for each axis of the buffer, the index of the load as an ``IndexSum``.

        Raises:
            NotVectorisableAtOnce: no operation can rearrange the elements; or an index is out of bounds; or more than
                ``_MOST_OVERHEAD`` times the bytes of the elements would be loaded from GM.
        """
        access = self._checked_access(source, places, self.extents)
        if space_of(source) == "gm":
            access = self._load_from_gm(access.split_axes(self.extents))
            if (found := region_indices(access.places)) is not None:
                return region_of(self.loop, access.source, found, self.extents)
        way = self.cheapest_way(access, self.extents, (source, tuple(places)) if isinstance(places[-1].offset, int) else None)
        self.record_rearranged(way.description, source, way.cycles)
        return way.build()

    def _checked_access(self, source: SSAValue, places: Sequence[IndexSum], extents: Sequence[int]) -> ElementAccess:
        """Returns an access without loop variables that are always 0.

        Raises:
            NotVectorisableAtOnce: it reaches beyond the buffer.
        """
        bare = tuple(IndexSum(tuple(term for term in place.terms if extents[term[0]] != 1), place.offset) for place in places)
        shape = tile.shape_of(source)
        for axis, (place, size) in enumerate(zip(bare, shape, strict=True)):
            low, high = place.bounds(extents)
            if isinstance(place.offset, int) and (low < 0 or (high >= size > 0)):
                msg = (f"an access to {buffer_name(source)} reaches from {low} to {high} of axis {axis}, which has {size} "
                       "elements")
                raise NotVectorisableAtOnce(msg, "let the loop run over the points that have an element")
        return ElementAccess(source, shape, bare)

    def _load_from_gm(self, access: ElementAccess) -> ElementAccess:
        """Loads the region of a tensor in GM that holds an access into UB; returns the access to that tile."""
        starts, sizes, rest = list[SSAValue | int](), list[int](), list[IndexSum]()
        for axis, (place, have) in enumerate(zip(access.places, access.shape, strict=True)):
            low, high = place.bounds(self.extents)
            if isinstance(place.offset, int):
                step = place.terms[0][1] if len(place.terms) == 1 else 1
                end = high + 1
                if axis == len(access.shape) - 1 and step > 1:  # whole groups of ``step`` elements, for deinterleave
                    low -= low % step
                    end = low + self.extents[place.terms[0][0]] * step
                    end = end if end <= have else high + 1
                starts.append(low)
                sizes.append(end - low)
                rest.append(IndexSum(place.terms, place.offset - low))
            else:
                starts.append(self.emit_sum(self.before_loop, place.offset, low))
                sizes.append(high - low + 1)
                rest.append(IndexSum(place.terms, -low))
        points = self.point_count(sorted(set(access.variables)))
        if prod(sizes) > _MOST_OVERHEAD * points:
            shape = "x".join(map(str, sizes))
            msg = (f"{points} elements of {buffer_name(access.source)} are spread over {shape} in GM, too far apart to load "
                   "all elements between them")
            edit = f"T.copy the {shape} tile to UB, and read that; or a row at a time in a loop of T.serial"
            raise NotVectorisableAtOnce(msg, edit)
        known = self._tiles_from_gm.get((access.source, tuple(starts), tuple(sizes)))
        if known is not None:
            return ElementAccess(known, tile.shape_of(known), tuple(rest))
        unit = max(1, BLOCK // element_bytes(access.source))
        whole = self.allocate(self.before_loop, element_type_of(access.source), [*sizes[:-1], ceil(sizes[-1] / unit) * unit])
        part = self.leading_part(whole, sizes)
        source = self._view_of_access(access)
        if sizes != list(access.shape) or any(start != 0 for start in starts):
            source = self.insert(self.before_loop, tile.RegionOp(source, starts, sizes, range(len(sizes)))).results[0]
        self.insert(self.before_loop, tile.CopyOp(source, part))
        self.uses_other_pipes = True
        self._tiles_from_gm[access.source, tuple(starts), tuple(sizes)] = whole
        return ElementAccess(whole, tile.shape_of(whole), tuple(rest))

    def _view_of_access(self, access: ElementAccess) -> SSAValue:
        """Returns the buffer viewed with the shape of an access."""
        return self._view_as(self.before_loop, access.source, access.shape)

    def _view_as(self, point: InsertPoint, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        kind = value.type
        assert isinstance(kind, MemRefType)
        if tile.shape_of(value) == tuple(shape):
            return value
        seen = MemRefType(kind.element_type, shape, memory_space=kind.memory_space)
        return self.insert(point, tile.ViewOp(value, seen)).results[0]

    def leading_part(self, whole: SSAValue, sizes: Sequence[int]) -> SSAValue:
        """Emits the region of a tile that starts at 0 along all axes and has the given sizes; returns the region."""
        if tuple(sizes) == tile.shape_of(whole):
            return whole
        return self.insert(self.before_loop, tile.RegionOp(whole, [0] * len(sizes), sizes, range(len(sizes)))).results[0]

    def cheapest_way(self, access: ElementAccess, extents: Sequence[int], key: _Key | None = None,
                     flat: SSAValue | None = None) -> Rearrangement:
        """Returns the rearrangement of an access with the fewest cycles.

        Args:
            access: the access.
            extents: the sizes of the iteration space.
            key: the buffer and the index sums of the load as written, if other loads may share a deinterleave with it.
            flat: a row into which a gather may write the elements; by default, a gather allocates its target.

        Raises:
            NotVectorisableAtOnce: no operation can rearrange the elements.
        """
        ways = [self.by_region(access.split_axes(extents), extents, key), self._by_gather(access, extents, flat)]
        if extents is self.extents:
            ways += [self._by_row_gathers(access), self._by_elements(access)]
        found = [way for way in ways if way is not None]
        if not found:
            raise self.unsupported_error(access.source, "read")
        return min(found, key=lambda way: way.cycles)

    def unsupported_error(self, buffer: SSAValue, verb: str) -> NotVectorisableAtOnce:
        """Returns the error that no vector operation can rearrange the elements of a buffer; the caller raises it.

        Args:
            buffer: the buffer.
            verb: ``read`` or ``written``.
        """
        shape = "x".join(map(str, tile.shape_of(buffer)))
        msg = (f"{buffer_name(buffer)} ({dtype_of(element_type_of(buffer))} {shape}) is {verb} in another order than that of "
               "the points, and no vector operation rearranges its elements so")
        if verb == "read":
            edit = "reorder the elements first: T.vtranspose swaps axes, T.vdeinterleave takes every second one, T.vgather any"
        else:
            edit = ("write a tile in the order of the loop, and move it afterwards: T.vtranspose swaps axes, T.vinterleave "
                    "merges two tiles; or write all elements in between in the same loop")
        return NotVectorisableAtOnce(msg, edit)

    # -- a region, every second or fourth element of its rows, axes swapped -----------------------------------------------

    def by_region(self, access: ElementAccess, extents: Sequence[int], key: _Key | None) -> Rearrangement | None:
        """Returns the rearrangement by a region, a deinterleave and transpositions; None where these are not enough.

        The region has whole rows. If the last index has the factor 2 or 4, a deinterleave selects every second or fourth
        element of the rows. At most two transpositions then bring the axes into the order of the loop.

        Args:
            access: the access.
            extents: the sizes of the iteration space.
            key: the buffer and the index sums of the load as written, if other loads may share the deinterleave.
        """
        *outer, last = access.places
        variables = access.variables
        if any(len(place.terms) > 1 or (place.terms and place.terms[0][1] != 1) for place in access.places[:-1]):
            return None
        if len(last.terms) != 1 or len(set(variables)) != len(variables):
            return None
        count, step = extents[last.terms[0][0]], last.terms[0][1]
        swaps = _swaps_to_sort(variables)
        if step not in (1, 2, 4) or (step > 1 and not isinstance(last.offset, int)) or len(swaps) > 2:
            return None
        channel = last.offset % step if isinstance(last.offset, int) and step > 1 else 0
        start = last.offset - channel if isinstance(last.offset, int) else last.offset
        whole = ElementAccess(access.source, access.shape, (*outer, IndexSum(last.terms, start)))
        sizes = [extents[place.terms[0][0]] if place.terms else 1 for place in outer] + [count * step]
        if (isinstance(start, int) and start + count * step > access.shape[-1]) or not whole.is_aligned_region(sizes):
            return None
        kind, total = dtype_of(element_type_of(access.source)), prod(sizes) // step
        if kind.bits < 8 or (step > 1 and not is_dtype_supported("deinterleave", kind)) or (swaps and (
                not is_dtype_supported("transpose", kind) or len(variables) > _MOST_AXES)):
            return None
        cycles, rows = 0.0, prod(sizes[:-1])
        rates = self.chip.vector
        for level in range(step.bit_length() - 1):
            cycles += (self.vector_cycles("reducev2", kind.nbytes, count * step >> level + 1, rows)
                       + rates["reducev2"].fixed) / min(2, len(self._loaded_channels(key, step)))
        cycles += len(swaps) * (self.vector_cycles("nchwconv", kind.nbytes, total) + rates["nchwconv"].fixed
                                + self.vector_cycles("copy", kind.nbytes, total) + rates["copy"].fixed)
        names = ["deinterleave"] * (step > 1) + ["transpose"] * bool(swaps)

        def build() -> SSAValue:
            offsets = [place.offset for place in whole.places]
            kept = [position for position, place in enumerate(whole.places) if place.terms]
            found = self._view_of_access(access)
            if kept != list(range(len(sizes))) or tuple(sizes) != access.shape or any(offset != 0 for offset in offsets):
                found = self.insert(self.before_loop, tile.RegionOp(found, offsets, sizes, kept)).results[0]
            order = list(variables)
            if step > 1:
                found = self._deinterleave(found, key, step, channel)
            for one, two in swaps:
                found = self._swap_axes(found, one, two)
                order[one], order[two] = order[two], order[one]
            return add_unit_axes(self.loop, found, order, extents)

        return Rearrangement(cycles, " and ".join(names), build)

    def _loaded_channels(self, key: _Key | None, step: int) -> set[int]:
        """Returns which of every ``step`` elements the loop loads, of those that an access and its neighbours take."""
        if key is None:
            return {0}
        source, (*outer, last) = key
        assert last is not None and isinstance(last.offset, int)
        first = last.offset - last.offset % step
        return {other for other in range(step) if (source, (*outer, IndexSum(last.terms, first + other))) in self.loaded}

    def _deinterleave(self, rows: SSAValue, key: _Key | None, step: int, channel: int) -> SSAValue:
        """Emits every ``step``-th element of rows, from ``channel`` on, with the other channels that the loop loads."""
        base, wanted = None, {channel, *self._loaded_channels(key, step)}
        if key is not None:
            source, (*outer, last) = key
            assert last is not None and isinstance(last.offset, int)
            base = (source, (*outer, IndexSum(last.terms, last.offset - channel)))
        size, origin = 2, 0
        while size <= step:
            bit = (channel // (size // 2)) % 2
            name = (*base, size * step + origin) if base is not None else None
            known = self._deinterleaved.get(name) if name is not None else None
            if known is None:
                shape = tile.shape_of(rows)
                here = {other // (size // 2) % 2 for other in wanted if other % (size // 2) == origin}
                half_shape = [*shape[:-1], shape[-1] // 2]
                made = [self.allocate(self.before_loop, element_type_of(rows), half_shape) if each in here else None
                        for each in range(2)]
                mode = "ALL_CHANNELS" if len(here) == 2 else f"CHANNEL_{bit}"
                outs = [each for each in made if each is not None]
                self.insert(self.before_loop, tile.CallOp("deinterleave", [rows], outs, {"index_mode": mode}))
                known = (made[0], made[1])
                if name is not None:
                    self._deinterleaved[name] = known
            half = known[bit]
            assert half is not None
            rows, origin, size = half, origin + bit * (size // 2), size * 2
        return rows

    def _swap_axes(self, source: SSAValue, one: int, two: int) -> SSAValue:
        """Emits a transposition of two axes, padded to the sizes that the unit takes."""
        shape = list(tile.shape_of(source))
        order = list(range(len(shape)))
        order[one], order[two] = two, one
        padded, nbytes = list(shape), element_bytes(source)
        if two == len(shape) - 1:
            padded[one] = ceil(shape[one] / max(16, BLOCK // nbytes)) * max(16, BLOCK // nbytes)
        padded[-1] = ceil(padded[-1] / max(1, BLOCK // nbytes)) * max(1, BLOCK // nbytes)
        if padded != shape:
            copied = self.allocate(self.before_loop, element_type_of(source), padded)
            self.insert(self.before_loop, tile.CopyOp(source, self.leading_part(copied, shape)))
            source = copied
        target = self.allocate(self.before_loop, element_type_of(source), [padded[axis] for axis in order])
        self.insert(self.before_loop, tile.CallOp("transpose", [source], [target], {"permutation": order}))
        return self.leading_part(target, [shape[axis] for axis in order])

    # -- elements from anywhere ------------------------------------------------------------------------------------------

    def strides_of(self, source: SSAValue) -> tuple[int, ...] | None:
        """Returns the strides, in elements, of a buffer that can be viewed as one row; None for other buffers.

        If lowering may pad the rows of the buffer to whole blocks, the strides are those with the padding.
        """
        shape, nbytes = tile.shape_of(source), element_bytes(source)
        if not isinstance(source.owner, tile.AllocOp) or any(size <= 0 for size in shape):
            return None
        pitch = shape[-1]
        if len(shape) > 1 and pitch * nbytes % BLOCK:
            if not is_paddable(root_of(source)):
                return None
            pitch = ceil(pitch * nbytes / BLOCK) * BLOCK // nbytes
        return (*(prod(shape[axis + 1:-1]) * pitch for axis in range(len(shape) - 1)), 1)

    def flatten(self, source: SSAValue) -> tuple[SSAValue, float]:
        """Emits a view of a buffer as one row; returns the view, and the cycles of the copy that the view may need.

        A buffer whose rows are padded is copied to a tile with explicit padding first. ``strides_of`` must not be None.
        """
        shape, strides = tile.shape_of(source), self.strides_of(source)
        assert strides is not None
        cycles = 0.0
        if len(shape) > 1 and strides[-2] != shape[-1]:
            copied = self.allocate(self.before_loop, element_type_of(source), [*shape[:-1], strides[-2]])
            self.insert(self.before_loop, tile.CopyOp(source, self.leading_part(copied, shape)))
            source, cycles = copied, self.vector_cycles("copy", element_bytes(source), shape[-1], prod(shape[:-1]))
        return self._view_as(self.before_loop, source, [prod(tile.shape_of(source))]), cycles

    def _by_gather(self, access: ElementAccess, extents: Sequence[int], flat: SSAValue | None) -> Rearrangement | None:
        """Returns the way by a gather of the elements' numbers, which are an arange; None where it does not apply."""
        kind, strides = dtype_of(element_type_of(access.source)), self.strides_of(access.source)
        if strides is None or not is_dtype_supported("gather", kind):
            return None
        steps = [0] * len(extents)
        for place, stride in zip(access.places, strides, strict=True):
            for axis, factor in place.terms:
                steps[axis] += factor * stride
        followed = [axis for axis in range(len(extents)) if axis in access.variables]
        if not followed:
            return None
        unit = max(8, BLOCK // kind.nbytes)
        row = ceil(extents[followed[-1]] / unit) * unit if len(followed) > 1 and flat is None else extents[followed[-1]]
        sizes = [*(extents[axis] for axis in followed[:-1]), row]
        outer = 0
        while outer < len(sizes) - 1 and (prod(sizes[outer:]) > _MOST_GATHERED or len(sizes) - outer > _MOST_AXES
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
            window, _ = self.flatten(access.source)
            offset: SSAValue | int = 0
            for place, stride in zip(access.places, strides, strict=True):
                offset = self.emit_sum(self.before_loop, offset, self.emit_product(self.before_loop, place.offset, stride))
            numbers = self.allocate(self.before_loop, I32, sizes[outer:])
            self.fill_arange(self.before_loop, offset, numbers, *(steps[axis] for axis in followed[outer:]))
            if row != extents[followed[-1]]:
                ways = [steps[axis] * (extents[axis] - 1) for axis in followed[:outer]]  # from the first row to the last one
                least, most = sum(min(way, 0) for way in ways), sum(max(way, 0) for way in ways)
                self.clamp_indices(numbers, prod(tile.shape_of(window)), least, most)
            target = flat if flat is not None else self.allocate(self.before_loop, element_type_of(access.source), sizes)
            shifted = self.allocate(self.before_loop, I32, sizes[outer:]) if outer else numbers
            point, rows = self.emit_loops(followed[:outer], extents)
            if outer:
                at = self.emit_index(point, IndexSum(tuple((axis, steps[axis]) for axis in followed[:outer]), 0), rows)
                by = self.insert(point, arith.IndexCastOp(self.as_value(point, at), I32)).results[0]
                self.insert(point, tile.ElementwiseOp("add", [numbers, by], shifted))
            here = target
            if flat is not None and outer:
                first: SSAValue | int = 0
                for position, axis in enumerate(followed[:outer]):
                    first = self.emit_sum(point, first, self.emit_product(point, rows[axis], prod(sizes[position + 1:])))
                here = self.insert(point, tile.RegionOp(flat, [first], [inner], [0])).results[0]
            elif outer:
                offsets = [rows[axis] if place < outer else 0 for place, axis in enumerate(followed)]
                kept = range(outer, len(sizes))
                here = self.insert(point, tile.RegionOp(target, offsets, [1] * outer + sizes[outer:], kept)).results[0]
            self.insert(point, tile.CallOp("gather", [window, self._view_as(point, shifted, [inner])],
                                           [self._view_as(point, here, [inner])]))
            if flat is not None:
                return flat
            return add_unit_axes(self.loop, self.leading_part(target, [extents[axis] for axis in followed]), followed, extents)

        return Rearrangement(cycles, "gather", build)

    # -- elements whose numbers are computed -----------------------------------------------------------------------------

    def indexed_gather_cycles(self, nbytes: int) -> tuple[float, list[int]]:
        """Returns the cycles of a gather of one element per point, and the shape that the tile of the element numbers must
        have.

        Args:
            nbytes: the bytes of an element.
        """
        unit = max(8, BLOCK // nbytes)
        row = ceil(self.extents[-1] / unit) * unit if len(self.extents) > 1 else self.extents[-1]
        sizes = [*self.extents[:-1], row]
        cycles = self.vector_cycles("gather", nbytes, prod(sizes)) + 3 * self.vector_cycles("add", 4, prod(sizes))
        return cycles + self.chip.vector["gather"].fixed + 3 * self.chip.vector["adds"].fixed, sizes

    def row_copy_cycles(self, nbytes: int) -> float:
        """Returns the cycles of copying one row for each point of the outer axes, with row numbers that are loaded.

        Args:
            nbytes: the bytes of an element.
        """
        copy, unit = self.chip.vector["copy"], self.chip.scalar
        row = (self.vector_cycles("copy", nbytes, self.extents[-1]) + copy.issue + unit.load + unit.issue
               + scalar_loop_cycles(self.chip))
        return self.point_count(range(len(self.extents) - 1)) * row + copy.fixed

    def gather_indexed(self, source: SSAValue, numbers: SSAValue, cycles: float) -> SSAValue:
        """Emits the gather of elements by element numbers; returns the tile with the elements.

        Args:
            source: the buffer in UB.
            numbers: a tile of int32 with the number of an element of ``source`` for each point, padded as
                ``indexed_gather_cycles`` states.
            cycles: the cycles of the gather, which are recorded.
        """
        window, copied = self.flatten(source)
        sizes = list(tile.shape_of(numbers))
        target = self.allocate(self.before_loop, element_type_of(source), sizes)
        unit = max(8, BLOCK // element_bytes(source))
        outer = 0
        while outer < len(sizes) - 1 and prod(sizes[outer:]) > _MOST_GATHERED:
            outer += 1
        if outer and prod(sizes[outer:]) % unit:
            outer = 0
        point, rows = self.emit_loops(range(outer), sizes)
        inner = prod(sizes[outer:])
        here = []
        for held in (numbers, target):
            if outer:
                offsets = [rows[axis] if axis < outer else 0 for axis in range(len(sizes))]
                kept = range(outer, len(sizes))
                held = self.insert(point, tile.RegionOp(held, offsets, [1] * outer + sizes[outer:], kept)).results[0]
            here.append(self._view_as(point, held, [inner]))
        self.insert(point, tile.CallOp("gather", [window, here[0]], [here[1]]))
        self.record_rearranged("gather", source, cycles + copied)
        return self.leading_part(target, self.extents)

    def clamp_indices(self, numbers: SSAValue, count: int, least: int, most: int) -> None:
        """Emits operations that clamp element numbers to valid ones, because the padding of a tile holds invalid numbers.

        Args:
            numbers: the tile of int32 with the element numbers, which is changed.
            count: the number of elements of the source.
            least: the smallest number that is added to the element numbers later.
            most: the largest number that is added to the element numbers later.
        """
        for name, bound in (("max", -least), ("min", count - 1 - most)):
            limit = self.insert(self.before_loop, arith.ConstantOp(IntegerAttr(bound, 32))).results[0]
            self.insert(self.before_loop, tile.ElementwiseOp(name, [numbers, limit], numbers))

    # -- rows and elements -------------------------------------------------------------------------------------------------

    def _allocate_target(self, access: ElementAccess) -> SSAValue:
        shape = [extent if axis in access.variables else 1 for axis, extent in enumerate(self.extents)]
        return self.allocate(self.before_loop, element_type_of(access.source), shape)

    def _by_row_gathers(self, access: ElementAccess) -> Rearrangement | None:
        cycles = self.row_cycles_of(access.source, access.places, "gather")
        last = access.places[-1].terms
        if cycles is None or last[0][0] != max(access.variables) or access.variables.count(last[0][0]) > 1:
            return None
        outer = sorted({axis for place in access.places[:-1] for axis, _ in place.terms})

        def build() -> SSAValue:
            landing = self._allocate_target(access)
            self.gather_rows(access.source, access.places, landing)
            return landing

        return Rearrangement(self.point_count(outer) * (cycles + len(outer) * 2), "gather of each row", build)

    def _by_elements(self, access: ElementAccess) -> Rearrangement:
        def build() -> SSAValue:
            landing = self._allocate_target(access)
            self.uses_other_pipes = True
            self.move_elements(landing, access.source, access.places, write=False)
            return landing

        return Rearrangement(self.point_count(sorted(set(access.variables))) * self.element_cycles(), "the scalar unit", build)


def _swaps_to_sort(variables: Sequence[int]) -> list[tuple[int, int]]:
    """The swaps of two places each that bring numbers into order, the later place second."""
    found, order = list[tuple[int, int]](), list(variables)
    for place, wanted in enumerate(sorted(order)):
        if order[place] != wanted:
            other = order.index(wanted)
            found.append((place, other))
            order[place], order[other] = order[other], order[place]
    return found


def is_dtype_supported(name: str, kind: ops.DType) -> bool:
    """Whether an operation that moves elements supports an element type.

    Args:
        name: the name of the operation in the op table, such as ``gather``.
        kind: the element type.
    """
    entry = ops.operation(name)
    assert isinstance(entry, ops.Structured)
    return kind in entry.dtypes


__all__ = ["RearrangedLoads"]
