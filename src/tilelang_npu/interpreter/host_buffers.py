"""Buffers of an interpreted kernel: NumPy arrays in their element types, their slices and their elements.

``A[i, j]`` is an :class:`HostElement`: its value where a number is needed, the first element of a tile where ``T.copy`` takes
one. ``A[a:b, c]`` is a :class:`HostSlice`. Both refer to the buffer's memory; they hold no values. An index is not negative and
is inside its axis; a slice of a global tensor may extend past the tensor's end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from tilelang_npu.interpreter.operation_table import OPERATIONS, tiles
from tilelang_npu.interpreter.running_core import current, fail
from tilelang_npu.interpreter.typed_scalars import INDEX, Operators, TypedScalar, convert, is_literal, mode_to_integer, scalar
from tilelang_npu.target.dtypes import DType
from tilelang_npu.target.dtypes import dtype as element_type

Array = np.ndarray[Any, Any]


class TileRef:
    """A buffer, or a slice of one.

    Attributes:
        buffer: the whole buffer.
        offsets, sizes: the first element and the number of elements along each axis of the buffer.
        kept: the axes of the buffer that the tile has; along the others it has one element.
    """

    buffer: HostBuffer
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    kept: tuple[int, ...]
    __array_ufunc__ = None
    shape = property(lambda self: self.extents)
    dtype = property(lambda self: self.buffer.element)
    kind = property(lambda self: self.buffer.element)
    name = property(lambda self: self.buffer.label)
    space = property(lambda self: self.buffer.memory)
    ndim = property(lambda self: len(self.kept))
    data = property(lambda self: self)

    @property
    def extents(self) -> tuple[int, ...]:
        """The sizes of the tile's axes."""
        return tuple(self.sizes[axis] for axis in self.kept)

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.extents)

    def describe(self) -> str:
        """The name, the shape and the element type, for a message."""
        return f"{self.name} [{', '.join(map(str, self.extents))}] {self.kind}"

    def view(self) -> Array:
        """The elements, as an array that shares the buffer's memory.

        Raises:
            TileError: T130, a part of the tile is outside of the buffer.
        """
        self.buffer.receive()
        for axis, (start, size, whole) in enumerate(zip(self.offsets, self.sizes, self.buffer.array.shape, strict=True)):
            if start < 0 or start + size > whole:
                raise fail(f"elements {start} to {start + size - 1} are outside axis {axis} of {self.buffer.describe()}",
                           f"valid are 0 to {whole - 1}", "T130")
        return self._cut(self.sizes)

    def inside(self) -> tuple[Array, tuple[int, ...]]:
        """The elements inside the buffer, as an array that shares its memory, and their number along each axis of the tile."""
        sizes = [max(0, min(size, whole - start))
                 for start, size, whole in zip(self.offsets, self.sizes, self.buffer.array.shape, strict=True)]
        if min(self.offsets, default=0) < 0:
            raise fail(f"a tile of {self.buffer.describe()} starts at {self.offsets}", "no start is negative", "T502")
        if 0 in sizes:  # the tile is entirely past the end
            return np.empty((0,) * self.ndim, self.buffer.array.dtype), (0,) * self.ndim
        return self._cut(sizes), tuple(sizes[axis] for axis in self.kept)

    def _cut(self, sizes: Sequence[int]) -> Array:
        found: Array = self.buffer.array[tuple(
            slice(start, start + size) if axis in self.kept else start
            for axis, (start, size) in enumerate(zip(self.offsets, sizes, strict=True)))]
        return found

    def with_axes(self, kept: Sequence[int]) -> TileRef:
        """The same tile with other axes."""
        return HostSlice(self.buffer, self.offsets, self.sizes, kept)

    def squeezed(self) -> TileRef:
        """The tile without axes of one element; one axis stays where all have one."""
        kept = [axis for axis in self.kept if self.sizes[axis] != 1]
        return self.with_axes(kept or list(self.kept[-1:]) or [len(self.sizes) - 1])

    def resized(self, extents: Sequence[int]) -> TileRef:
        """The tile at the same first element with other sizes of its axes."""
        sizes = list(self.sizes)
        for axis, size in zip(self.kept, extents, strict=True):
            sizes[axis] = size
        return HostSlice(self.buffer, self.offsets, sizes, self.kept)

    def right_aligned(self, sizes: Sequence[int]) -> TileRef:
        """The tile at the same first element whose last axes have ``sizes``, and whose other axes have one element."""
        rank, given = len(self.offsets), list(sizes)
        while len(given) > rank and given[0] == 1:
            given.pop(0)
        if len(given) > rank:
            raise fail(f"{len(given)} sizes for {self.describe()}", "give one size per axis", "T131")
        return HostSlice(self.buffer, self.offsets, [1] * (rank - len(given)) + given, range(rank))

    def flat(self) -> Array:
        """The buffer's elements from the tile's first one on, in row-major order, as a view."""
        self.buffer.receive()
        array = self.buffer.array
        return array.reshape(-1)[int(np.ravel_multi_index(self.offsets, array.shape)):]

    def __array__(self, kind: Any = None, copy: bool | None = None) -> Array:
        found = self.view()
        return found.astype(kind) if kind is not None else found.copy() if copy else found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("load", "buffer", "array", "offsets", "sizes", "kept"):
            raise AttributeError(name)
        return getattr(self.view(), name)

    def __getitem__(self, items: Any) -> Any:
        return subscript(self, items if isinstance(items, tuple) else (items,))

    def __setitem__(self, items: Any, value: Any) -> None:
        place = self[items]
        if not isinstance(place, HostElement):
            raise fail(f"assignment to the slice {place.describe()} is not supported",
                       "T.fill writes one value to it, T.copy another buffer's elements", "T141")
        place.store(value)

    def __len__(self) -> int:
        return self.extents[0]

    def __repr__(self) -> str:
        return f"{self.describe()}\n{self.view()}"


class HostBuffer(TileRef):
    """A global tensor or a buffer on chip.

    Attributes:
        array, element, label: its elements, their type, and the author's name for it.
        memory: ``gm``, ``ub``, ``l1``, ``l0a``, ``l0b``, ``l0c``, ``local``; or ``shared`` and ``fragment`` where its uses
            decide.
        named: whether an assignment has given it its name.
        own: whether each core has its own.
        root: the buffer that it is a view of; itself for other buffers.
        key: the statement that allocated it, and how often the statement had allocated.
        pending: tiles that another core sends and this core has not received: the queue, the tile, the conversion.
    """

    def __init__(self, array: Array, element: DType, memory: str, label: str = "buffer", key: object = None) -> None:
        self.array, self.element, self.memory, self.label, self.key = array, element, memory, label, key
        self.named, self.own = False, True
        self.root = self.buffer = self
        self.offsets, self.sizes, self.kept = (0,) * array.ndim, array.shape, tuple(range(array.ndim))
        self.pending: list[tuple[list[Any], TileRef, Any]] = []

    def seen(self, array: Array, element: DType) -> HostBuffer:
        """The same memory with another shape or type; ``array`` is a view of it."""
        made = HostBuffer(array, element, self.memory, self.label)
        made.root, made.own = self.root, self.own
        return made

    def receive(self) -> None:
        """Waits for the tiles that another core is sending to this buffer."""
        pending, self.root.pending = self.root.pending, []
        for queue, target, converted in pending:
            if not queue:
                current().launch.schedule.wait(current(), lambda queue=queue: bool(queue), f"a tile for {target.describe()}")
            target.view()[...] = converted(queue.pop(0))


class ScalarVariable(HostBuffer, Operators):
    """``T.alloc_var``: one element that is read and written by its name.

    Attributes:
        lanes: inside a ``T.Parallel`` that runs on arrays its values, one for each point; None where the loop has stored none.
    """

    def __init__(self, element: DType) -> None:
        super().__init__(np.zeros(1, element.numpy), element, "local", "variable")
        self.lanes: TypedScalar | None = None

    __hash__ = object.__hash__
    __array_ufunc__ = None

    def load(self) -> TypedScalar:
        """Its value."""
        points = current().points
        if points is not None:
            if self.lanes is not None:
                return self.lanes
            points.read_before_written(self)
        return TypedScalar(self.array[0], self.kind)

    def store(self, value: Any) -> None:
        """Assigns it."""
        points, made = current().points, stored(value, self.kind)
        if points is None:
            self.array[0] = made
        else:
            points.assign(self, made)

    def __getitem__(self, items: Any) -> Any:
        return self

    def __setitem__(self, items: Any, value: Any) -> None:
        self.store(value)

    def __len__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return str(self.load().value)


class HostSlice(TileRef):
    """A slice of a buffer."""

    def __init__(self, buffer: HostBuffer, offsets: Sequence[int], sizes: Sequence[int], kept: Sequence[int]) -> None:
        self.buffer, self.offsets, self.sizes, self.kept = buffer, tuple(offsets), tuple(sizes), tuple(kept)


class HostElement(Operators):
    """``A[i, j]``: an element, or the first element of a tile.

    Attributes:
        buffer: the buffer.
        indices: for each axis an integer, or a scalar with one integer for each point of a ``T.Parallel``.
    """

    __slots__ = ("buffer", "indices")

    def __init__(self, buffer: HostBuffer, indices: Sequence[Any]) -> None:
        self.buffer, self.indices = buffer, tuple(indices)

    kind = property(lambda self: self.buffer.element)
    dtype = property(lambda self: self.buffer.element)
    name = property(lambda self: self.buffer.label)

    def describe(self) -> str:
        """The element, for a message."""
        return f"an element of {self.buffer.describe()}"

    def load(self) -> TypedScalar:
        """The element's value."""
        run = current()
        self.buffer.receive()
        run.touches(self.buffer)
        if run.points is not None:
            return TypedScalar(run.points.load(self.buffer, self.indices), self.kind)
        return TypedScalar(self.buffer.array[self._place()], self.kind)

    def store(self, value: Any) -> None:
        """Writes the element."""
        run = current()
        self.buffer.receive()
        if not run.touches(self.buffer, writes=True):
            return
        run.launch.before_write(self.buffer if run.points is not None else memory_of(self))
        made = stored(value, self.kind)
        if run.points is not None:
            run.points.store(self.buffer, self.indices, made)
        else:
            self.buffer.array[self._place()] = made

    def start(self) -> tuple[int, ...]:
        """The indices as integers.

        Raises:
            NeedsPoints: an index has one value for each point.
        """
        return tuple(int(index) for index in self.indices)

    def _place(self) -> tuple[int, ...]:
        place = self.start()
        for axis, (index, size) in enumerate(zip(place, self.buffer.array.shape, strict=True)):
            if not 0 <= index < size:
                raise fail(f"index {index} is outside axis {axis} of {self.buffer.describe()}", f"valid are 0 to {size - 1}",
                           "T130")
        return place

    def __repr__(self) -> str:
        return str(self.load().value)

    def __format__(self, layout: str) -> str:
        return format(self.load(), layout)


def stored(value: Any, kind: DType) -> Any:
    """A value converted to an element that is stored."""
    if is_literal(value):
        return kind.numpy.type(value) if not kind.is_integer else np.asarray(int(value)).astype(kind.numpy)[()]
    return convert(scalar(value).value, kind, mode_to_integer())


def integer(value: Any) -> int:
    """A size, an offset or an index as a Python integer.

    Raises:
        NeedsPoints: it has one value for each point of a ``T.Parallel``.
        TileError: T110, it is not an integer.
    """
    if type(value) is int:
        return value
    if not isinstance(value, (bool, np.bool_, float, np.floating)) and hasattr(value, "__index__"):
        try:
            found: int = value.__index__()
            return found
        except TypeError:
            pass
    raise fail(f"an index or a size is an integer, not {value!r}", "use // instead of /, or T.cast(x, 'int32')", "T110")


def subscript(memory: TileRef, items: Sequence[Any]) -> HostElement | HostSlice:
    """``memory[items]``: an element where every axis has an index, else a slice; axes without an item are taken whole."""
    if len(items) > memory.ndim:
        raise fail(f"{memory.describe()} has {memory.ndim} axes, {len(items)} indices are given", "give one index per axis")
    offsets: list[Any] = list(memory.offsets)
    sizes, kept = list(memory.sizes), list(memory.kept)
    for axis, item in zip(memory.kept, items, strict=False):
        if isinstance(item, slice):
            start = 0 if item.start is None else integer(item.start)
            stop = sizes[axis] if item.stop is None else integer(item.stop)
            if stop < start or start < 0 or item.step not in (None, 1):
                raise fail(f"slice {start}:{stop} of axis {axis} of {memory.describe()}", "a slice is start:end", "T130")
            offsets[axis], sizes[axis] = offsets[axis] + start, stop - start
        else:
            place = _place(item)
            offsets[axis] = place if not memory.offsets[axis] else place + memory.offsets[axis]
            sizes[axis] = 1
            kept.remove(axis)
    if not kept and len(items) == memory.ndim:
        return HostElement(memory.buffer, offsets)
    return HostSlice(memory.buffer, [integer(offset) for offset in offsets], sizes, kept)


def _place(item: Any) -> Any:
    """An index: an integer, or a scalar with one for each point."""
    if isinstance(item, Operators):
        found = scalar(item)
        if np.ndim(found.value) and found.kind.is_integer:
            return found if found.kind is INDEX else TypedScalar(found.value.astype(np.int64), INDEX)
    return integer(item)


def memory_of(value: Any, what: str = "an operand") -> TileRef:
    """A buffer or a slice; an element becomes a slice of one element.

    Raises:
        TileError: T110, it is none of these.
    """
    value = value.origin if isinstance(value, TypedScalar) and value.origin is not None else value
    if isinstance(value, TileRef) and not isinstance(value, ScalarVariable):
        return value
    if isinstance(value, HostElement):
        rank = len(value.indices)
        return HostSlice(value.buffer, value.start(), (1,) * rank, range(rank))
    raise fail(f"{what} must be a buffer or a slice, not {value!r}", "write a buffer, A[i:j, :] or A[i, j]", "T110")


# --- allocations ---------------------------------------------------------------------------------------------------------

POISON: ContextVar[tuple[float, int]] = ContextVar("tilelang_npu_poison", default=(float("nan"), -1))
"""The float and the integer in memory that nothing has written. Results that depend on it use such memory."""


def sizes_of(shape: Any) -> tuple[int, ...]:
    """A shape as integers; a single size becomes a shape with one axis."""
    return tuple(integer(size) for size in (shape if isinstance(shape, (tuple, list)) else (shape,)))


def _key_of_allocation(space: str) -> tuple[object, ...]:
    """The statement that allocates, and how often it has allocated in this block."""
    core = current()
    site = (core.site(), space)
    number = core.allocated[site] = core.allocated.get(site, 0) + 1
    return (*site, number)


def allocate(shape: Any, kind: Any, space: str) -> HostBuffer:
    """Allocates a buffer. Cores that run concurrently share the buffers in the Cube core's memories."""
    core, element, sizes = current(), element_type(kind), sizes_of(shape)
    number, whole = POISON.get()
    array = np.full(sizes, number if element.is_float else whole).astype(element.numpy)
    key = _key_of_allocation(space)
    if core.kind == "all":
        return HostBuffer(array, element, space, key=key)
    space = core.launch.roles.get(key, "ub" if space in ("shared", "fragment") else space)
    made = HostBuffer(array, element, space, key=key)
    if space in ("ub", "local"):
        return made
    made.own = False
    shared: HostBuffer = core.launch.shared.setdefault((core.block, key), made)
    return shared


def _enter_allocation(name: str) -> None:
    def call(shape: Any, dtype: Any, scope: str = "") -> HostBuffer:
        return allocate(shape, dtype, "l1" if scope == "shared.l1" else name.lower())

    OPERATIONS[f"alloc_{name}"] = call


for _name in ("shared", "fragment", "ub", "L1", "L0A", "L0B", "L0C", "local"):
    _enter_allocation(_name)


@tiles("alloc_global")
def alloc_global(shape: Any, dtype: Any, scope: str = "global") -> HostBuffer:
    """A tensor in GM that belongs to the launch."""
    made: HostBuffer = current().launch.own_tensor(_key_of_allocation("gm"), sizes_of(shape), element_type(dtype))
    return made


def _alloc_var(dtype: Any, *arguments: Any, scope: str = "local.var", init: Any = None) -> ScalarVariable:
    made = ScalarVariable(element_type(dtype))
    values = [value for value in arguments if not isinstance(value, str)]
    if values or init is not None:
        made.store(values[0] if values else init)
    return made


OPERATIONS["alloc_var"] = _alloc_var


class _Addressed:
    """A memory in which buffers have addresses; it grows as buffers are placed in it."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)
        self._placed: list[tuple[HostBuffer, int]] = []

    def place(self, buffer: HostBuffer, address: int) -> None:
        """Places a buffer at an address."""
        self._placed.append((buffer, address))
        end = address + buffer.array.nbytes
        if end > self._bytes.size:
            before, self._bytes = self._bytes, np.full(end, POISON.get()[1] & 0xFF, np.uint8)
            self._bytes[:before.size] = before
        for one, start in self._placed:
            one.array = self._bytes[start:start + one.array.nbytes].view(one.array.dtype).reshape(one.array.shape)


@tiles("annotate_address")
def annotate_address(address_map: Mapping[HostBuffer, int]) -> None:
    """Places buffers at byte addresses of their memories; they may overlap."""
    core = current()
    for buffer, address in address_map.items():
        space = {"shared": "ub", "fragment": "ub"}.get(buffer.space, buffer.space)
        private = space == "ub" or core.kind == "all"
        where: Any = core.addressed if private else core.launch.shared
        where.setdefault((None if private else core.block, space), _Addressed()).place(buffer, address)


@tiles("annotate_layout", "func_attr")
def without_effect(*_: Any, **__: Any) -> None:
    """Has no effect on values."""


# --- the same memory under another shape or type -----------------------------------------------------------------------------


@tiles("reinterpretcast")
def reinterpretcast(dst: HostBuffer, src: HostBuffer, casttype: str) -> None:
    """Lets ``dst`` use the memory of ``src``, whose bits are read as the element type of ``dst``."""
    flat = src.array.reshape(-1).view(np.uint8)
    if dst.array.nbytes > flat.size:
        raise fail(f"T.reinterpretcast: {dst.describe()} is longer than {src.describe()}", "give it no more bytes", "T110")
    dst.array = flat[:dst.array.nbytes].view(dst.array.dtype).reshape(dst.array.shape)
    dst.root, dst.own = src.root, src.own


@tiles("view")
def view(src: Any, shape: Any = None, dtype: Any = None) -> HostBuffer:
    """The buffer with another shape; its bits are read as another element type."""
    found = memory_of(src)
    array, element = found.view(), found.kind if dtype is None else element_type(dtype)
    if not array.flags.c_contiguous:
        raise fail(f"{found.describe()} has gaps between its rows", "copy it into a buffer of that shape")
    bits, sizes = array.reshape(-1).view(element.numpy), found.extents if shape is None else sizes_of(shape)
    if bits.size != math.prod(sizes):
        raise fail(f"{found.describe()} has not as many elements as {list(sizes)}", "give a shape of as many elements")
    return found.buffer.seen(bits.reshape(sizes), element)


@tiles("vbitcast", "npuir_bitcast")
def bitcast(src: Any, dtype: Any, size: Any = None) -> HostBuffer:
    """The same bits as another element type of the same width."""
    found = memory_of(src) if size is None else memory_of(src).right_aligned(sizes_of(size))
    return found.buffer.seen(found.view().view(element_type(dtype).numpy), element_type(dtype))


@tiles("reshape", "npuir_reshape")
def reshape(src: Any, shape: Any = None, dst: Any = None) -> Any:
    """``T.reshape(buffer, shape)`` is the buffer with another shape; ``T.reshape(src, dst)`` copies it to a buffer of another
    shape.
    """
    other = shape if dst is None else dst
    if not isinstance(other, TileRef):
        return view(src, other)
    if current().executes("cube" if other.space in ("l1", "l0c") else "vector"):
        other.view()[...] = memory_of(src).view().reshape(other.extents)
    return None
