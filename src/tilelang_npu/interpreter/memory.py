"""Buffers of an interpreted kernel: NumPy arrays in their element types, their slices and their elements.

``A[i, j]`` is an :class:`Element`: its value where a number is needed, the start of a tile where ``T.copy`` takes one. ``A[a:b, c]``
is a :class:`Region`. Both hold places of the buffer, not values. No index is negative, and none lies outside of its axis; a slice of
a global tensor may hang over the tensor's end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.interpreter.state import current
from tilelang_npu.interpreter.values import (
    INDEX,
    Index,
    NeedsPoints,
    Operators,
    Scalar,
    convert,
    is_literal,
    scalar,
)
from tilelang_npu.target.dtypes import DType

ON_CHIP = frozenset({"ub", "l1", "l0a", "l0b", "l0c", "shared", "fragment", "local"})


def fail(message: str, advice: str, code: str = "T111") -> TileError:
    """An error at the author's line."""
    return TileError(message, code=code, location=current().location(), help=advice)


class Memory:
    """What a buffer and a slice of one have in common.

    Attributes:
        buffer: the whole buffer.
        offsets: the first element along each axis of the buffer.
        sizes: the number of elements along each axis of the buffer.
        kept: the axes of the buffer that it has; the others have one element.
    """

    buffer: Buffer
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    kept: tuple[int, ...]
    __array_ufunc__ = None

    @property
    def extents(self) -> tuple[int, ...]:
        """The sizes of the axes that it has."""
        return tuple(self.sizes[axis] for axis in self.kept)

    @property
    def shape(self) -> tuple[int, ...]:
        """As ``extents``."""
        return self.extents

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.kept)

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.buffer.element

    @property
    def kind(self) -> DType:
        """Element type."""
        return self.buffer.element

    @property
    def name(self) -> str:
        """The author's name for the buffer."""
        return self.buffer.label

    @property
    def space(self) -> str:
        """The memory that it is in."""
        return self.buffer.memory

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.extents)

    @property
    def data(self) -> Memory:
        """What ``T.Tensor(shape, dtype, A.data)`` takes."""
        return self

    def describe(self) -> str:
        """Name, shape and element type, for a message."""
        return f"{self.name} [{', '.join(map(str, self.extents))}] {self.kind}"

    def view(self) -> np.ndarray[Any, Any]:
        """The elements, as an array that shares the buffer's memory.

        Raises:
            TileError: T130, a part of it lies outside of the buffer.
        """
        settle(self.buffer)
        for axis, (start, size, whole) in enumerate(zip(self.offsets, self.sizes, self.buffer.array.shape, strict=True)):
            if start < 0 or start + size > whole:
                raise fail(f"elements {start} to {start + size - 1} are outside axis {axis} of {self.buffer.describe()}",
                           f"valid are 0 to {whole - 1}", "T130")
        return self._cut(self.sizes)

    def inside(self) -> tuple[np.ndarray[Any, Any], tuple[int, ...]]:
        """The elements that lie in the buffer, as an array that shares its memory, and their number along each kept axis."""
        sizes = [max(0, min(size, whole - start))
                 for start, size, whole in zip(self.offsets, self.sizes, self.buffer.array.shape, strict=True)]
        if any(start < 0 for start in self.offsets):
            raise fail(f"a tile of {self.buffer.describe()} starts at {self.offsets}", "no start is negative", "T502")
        if 0 in sizes:  # all of it lies beyond the end
            return np.empty((0,) * len(self.kept), self.buffer.array.dtype), (0,) * len(self.kept)
        return self._cut(sizes), tuple(sizes[axis] for axis in self.kept)

    def _cut(self, sizes: Sequence[int]) -> np.ndarray[Any, Any]:
        places = tuple(slice(start, start + size) if axis in self.kept else start
                       for axis, (start, size) in enumerate(zip(self.offsets, sizes, strict=True)))
        found = self.buffer.array[places]
        return found if found.ndim == len(self.kept) else found.reshape([sizes[axis] for axis in self.kept])

    def peek(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What a sent array has for this tile."""
        return array

    def __array__(self, kind: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        found = self.view()
        return found.astype(kind) if kind is not None else found.copy() if copy else found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("load", "buffer", "array"):
            raise AttributeError(name)
        return getattr(self.view(), name)

    def __getitem__(self, items: Any) -> Any:
        return subscript(self, items if isinstance(items, tuple) else (items,))

    def __setitem__(self, items: Any, value: Any) -> None:
        place = self[items]
        if not isinstance(place, Element):
            raise fail(f"assignment to the slice {place.describe()} is not supported",
                       "T.fill writes one value to it, T.copy another buffer's elements", "T141")
        place.store(value)

    def __len__(self) -> int:
        return self.extents[0]

    def __repr__(self) -> str:
        return f"{self.describe()}\n{self.view()}"


class Buffer(Memory):
    """A global tensor or a buffer on the chip.

    Attributes:
        array: its elements.
        element: its element type.
        memory: ``gm``, ``ub``, ``l1``, ``l0a``, ``l0b``, ``l0c``, ``local``, or ``shared`` and ``fragment`` where its use decides.
        label: the author's name for it.
        named: whether an assignment has given it that name.
        root: the buffer whose memory it sees under another shape or type; itself for all others.
        own: whether each core has its own.
        key: the statement that allocated it, and how often it had.
        pending: tiles that another core sends, which have not been received.
    """

    def __init__(self, array: np.ndarray[Any, Any], kind: DType, space: str, label: str = "buffer") -> None:
        self.array, self.element, self.memory, self.label = array, kind, space, label
        self.named, self.own = False, True
        self.root = self.buffer = self
        self.key: object = None
        self.pending: list[tuple[Any, Memory, Any]] = []

    @property
    def offsets(self) -> tuple[int, ...]:  # type: ignore[override]
        return (0,) * self.array.ndim

    @property
    def sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(Index(size) for size in self.array.shape) if self.space == "gm" else self.array.shape

    @property
    def kept(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(range(self.array.ndim))

    def seen(self, array: np.ndarray[Any, Any], kind: DType) -> Buffer:
        """The same memory under another shape or type; ``array`` is a view of it."""
        made = Buffer(array, kind, self.space, self.label)
        made.root, made.own = self.root, self.own
        return made


class Variable(Buffer, Operators):
    """``T.alloc_var``: one element, read and written under its plain name.

    Attributes:
        lanes: its values inside a ``T.Parallel`` that runs on arrays, one for each point; None where the loop has stored none.
    """

    def __init__(self, kind: DType) -> None:
        super().__init__(np.zeros(1, kind.numpy), kind, "local", "variable")
        self.lanes: Scalar | None = None

    __hash__ = object.__hash__
    __array_ufunc__ = None

    def load(self) -> Scalar:
        """Its value."""
        points = current().points
        if points is not None:
            if self.lanes is not None:
                return self.lanes
            points.read_before_written(self)
        return Scalar(self.array[0], self.kind)

    def store(self, value: Any) -> None:
        """Assign it."""
        points = current().points
        made = stored(value, self.kind)
        if points is None:
            self.array[0] = made
        else:
            points.assign(self, made)

    def __getitem__(self, items: Any) -> Any:
        return self if items in (0, (0,)) else super().__getitem__(items)

    def __setitem__(self, items: Any, value: Any) -> None:
        self.store(value)

    def __len__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return str(self.load().value)


class Region(Memory):
    """A slice of a buffer."""

    def __init__(self, buffer: Buffer, offsets: Sequence[int], sizes: Sequence[int], kept: Sequence[int]) -> None:
        self.buffer, self.offsets, self.sizes, self.kept = buffer, tuple(offsets), tuple(sizes), tuple(kept)


class Element(Operators):
    """``A[i, j]``: an element, or the start of a tile.

    Attributes:
        buffer: the buffer.
        indices: a place along each of its axes: an integer, or a scalar with one for each point of a ``T.Parallel``.
    """

    __slots__ = ("buffer", "indices")

    def __init__(self, buffer: Buffer, indices: Sequence[Any]) -> None:
        self.buffer, self.indices = buffer, tuple(indices)

    @property
    def kind(self) -> DType:
        """Element type."""
        return self.buffer.element

    dtype = kind

    @property
    def name(self) -> str:
        """The author's name for the buffer."""
        return self.buffer.label

    def describe(self) -> str:
        """Text for a message."""
        return f"an element of {self.buffer.describe()}"

    def load(self) -> Scalar:
        """The element's value."""
        run = current()
        settle(self.buffer)
        run.touches(self.buffer)
        if run.points is not None and any(isinstance(index, Scalar) for index in self.indices):
            return Scalar(run.points.load(self.buffer, self.indices), self.kind)
        if run.points is not None:
            run.points.note_load(self.buffer, self.indices)
        return Scalar(self.buffer.array[self._place()], self.kind)

    def store(self, value: Any) -> None:
        """Write the element."""
        run = current()
        settle(self.buffer)
        if not run.touches(self.buffer, writes=True):
            return
        run.launch.note(self.buffer)
        if self.buffer.space == "gm":
            run.launch.before_write(self.buffer if run.points is not None else memory_of(self))
        if run.points is not None:
            run.points.store(self.buffer, self.indices, stored(value, self.kind))
            return
        made = stored(value, self.kind)
        self.buffer.array[self._place()] = made

    def start(self) -> tuple[int, ...]:
        """The place as integers.

        Raises:
            NeedsPoints: there is one for each point.
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
    """A value as an element that is stored: floats that become integers round to nearest even in a ``T.Parallel`` of the npuir
    dialect, as its vector casts do, and lose their fraction elsewhere."""
    if is_literal(value):
        return kind.numpy.type(value) if not kind.is_integer else np.asarray(int(value)).astype(kind.numpy)[()]
    run = current()
    mode = "rint" if run.in_parallel and run.dialect == "npuir" else "trunc"
    return convert(scalar(value).value, kind, mode)


def settle(buffer: Buffer) -> None:
    """Receive the tiles of a buffer that are under way from another core."""
    pending, buffer.root.pending = buffer.root.pending, []
    for queue, target, convert_to in pending:
        run = current()
        if not queue:
            run.launch.schedule.wait(run, lambda queue=queue: bool(queue), f"a tile for {target.describe()}")
        target.view()[...] = convert_to(target.peek(queue.pop(0)))


def integer(value: Any) -> int:
    """A size, an offset or an index as a Python integer.

    Raises:
        NeedsPoints: there is one for each point of a ``T.Parallel``.
        TileError: T110, it is no integer.
    """
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_, float, np.floating)) or not hasattr(value, "__index__"):
        raise fail(f"an index or a size is an integer, not {value!r}", "use // instead of /, or T.cast(x, 'int32')", "T110")
    try:
        return value.__index__()
    except TypeError as problem:
        raise fail(str(problem), "use // instead of /, or T.cast(x, 'int32')", "T110") from None


def subscript(memory: Memory, items: Sequence[Any]) -> Element | Region:
    """``memory[items]``: an element where every axis has an index, else a slice; missing axes are taken whole."""
    if len(items) > memory.ndim:
        raise fail(f"{memory.describe()} has {memory.ndim} axes, {len(items)} indices are given", "give one index per axis")
    offsets: list[Any] = list(memory.offsets)
    sizes, kept = list(memory.sizes), list(memory.kept)
    for axis, item in zip(memory.kept, items, strict=False):
        if isinstance(item, slice):
            if item.step not in (None, 1):
                raise fail("a slice with a step is not supported", "copy the rows one by one in a loop", "T141")
            start = 0 if item.start is None else integer(item.start)
            stop = sizes[axis] if item.stop is None else integer(item.stop)
            if stop - start < 0 or start < 0:
                raise fail(f"slice {start}:{stop} of axis {axis} of {memory.describe()}", "a slice is start:end", "T130")
            offsets[axis], sizes[axis] = offsets[axis] + start, stop - start
        else:
            place = _place(item)
            offsets[axis] = place if not memory.offsets[axis] else place + memory.offsets[axis]
            sizes[axis] = 1
            kept.remove(axis)
    if not kept and len(items) == memory.ndim:
        return Element(memory.buffer, offsets)
    return Region(memory.buffer, [integer(offset) for offset in offsets], sizes, kept)


def _place(item: Any) -> Any:
    """An index: an integer, or a scalar with one for each point."""
    if type(item) is int:
        return item
    if isinstance(item, Operators):
        found = scalar(item)
        if np.ndim(found.value):
            if not found.kind.is_integer:
                raise fail(f"an index is an integer, not {found.kind}", "use // instead of /", "T110")
            return found if found.kind is INDEX else Scalar(found.value.astype(np.int64), INDEX)
    return integer(item)


def memory_of(value: Any, what: str = "an operand") -> Memory:
    """A buffer or slice; an element stands for itself as a slice of one element.

    Raises:
        TileError: T110, it is neither.
    """
    if isinstance(value, Memory) and not isinstance(value, Variable):
        return value
    if isinstance(value, Element):
        rank = len(value.indices)
        return Region(value.buffer, value.start(), (1,) * rank, range(rank))
    raise fail(f"{what} must be a buffer or a slice, not {value!r}", "write a buffer, A[i:j, :] or A[i, j]", "T110")


__all__ = ["ON_CHIP", "Buffer", "Element", "Memory", "NeedsPoints", "Region", "Variable", "fail", "integer", "memory_of", "stored",
           "subscript"]
