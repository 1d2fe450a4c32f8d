"""Buffers of an interpreted kernel, which are NumPy arrays with an element type, and their slices and elements.

``A[i, j]`` is a :class:`HostElement`. Used as a number, the element is read; as an operand of ``T.copy``, it states the first
element of a tile. ``A[a:b, c]`` is a :class:`HostSlice`. Both refer to the buffer's memory and hold no values. An index must
not be negative and must be inside its axis; a slice of a global tensor may extend past the tensor's end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, TypeGuard

import numpy as np
from numpy.typing import DTypeLike

from tilelang_npu.card_signals import have_polled
from tilelang_npu.errors import Location
from tilelang_npu.interpreter.operation_table import OPERATIONS, known, tiles
from tilelang_npu.interpreter.parallel_points import Index, running_points
from tilelang_npu.interpreter.running_core import Core, current, fail
from tilelang_npu.interpreter.typed_scalars import (
    INDEX,
    Array,
    Operators,
    TypedScalar,
    Values,
    convert,
    is_literal,
    mode_to_integer,
    scalar,
)
from tilelang_npu.symmetric_heap import current_heap
from tilelang_npu.target.dtypes import DType
from tilelang_npu.target.dtypes import dtype as element_type

CUBE_MEMORIES = frozenset({"l1", "l0a", "l0b", "l0c"})
"""The memories of the Cube core."""


class ReadIndex(int):
    """An index that was read from a buffer, without a loop variable or block index in it.

    A tile may extend past the end of a tensor; a tile that such an index places outside of the tensor is a mistake in the data.
    """

    __slots__ = ()


class Reference:
    """The base class of tiles and elements, which refer to memory of a buffer.

    Attributes:
        buffer: the buffer.
        kind, dtype: the element type.
        name: the name of the buffer.
    """

    __slots__ = ()
    buffer: HostBuffer

    @property
    def kind(self) -> DType:
        return self.buffer.element

    dtype = kind

    @property
    def name(self) -> str:
        return self.buffer.label


class TileRef(Reference):
    """The base class of buffers and slices of buffers; such an object is called a tile.

    Attributes:
        buffer: the buffer itself, or the buffer of which the tile is a slice.
        offsets: the index of the tile's first element along each axis of ``buffer``.
        sizes: the number of elements along each axis of ``buffer``.
        kept: the axes of ``buffer`` that are axes of the tile; along all other axes, the tile has one element.
        space: the memory.
        ndim: the number of axes of the tile.
        data: the tile itself.
    """

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    kept: tuple[int, ...]
    __array_ufunc__ = None

    @property
    def space(self) -> str:
        return self.buffer.memory

    @property
    def ndim(self) -> int:
        return len(self.kept)

    @property
    def data(self) -> TileRef:
        return self

    @property
    def extents(self) -> tuple[int, ...]:
        """The size of each axis of the tile."""
        return tuple(self.sizes[axis] for axis in self.kept)

    shape = extents

    @property
    def count(self) -> int:
        """The number of elements of the tile."""
        return math.prod(self.extents)

    def describe(self) -> str:
        """Returns the name, the shape and the element type, for error messages."""
        return f"{self.name} [{', '.join(map(str, self.extents))}] {self.kind}"

    def view(self) -> Array:
        """Returns the elements as an array that shares the buffer's memory.

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
        """Returns the tile's elements that are inside the buffer, and their number along each axis of the tile.

        The elements are an array that shares the buffer's memory.

        Raises:
            TileError: T502, the tile starts at a negative index, or at one that was read from a buffer and is outside.
        """
        sizes = [max(0, min(size, whole - start))
                 for start, size, whole in zip(self.offsets, self.sizes, self.buffer.array.shape, strict=True)]
        if min(self.offsets, default=0) < 0:
            raise fail(f"a tile of {self.buffer.describe()} starts at {self.offsets}", "a start must not be negative", "T502")
        for axis, (start, size, whole) in enumerate(zip(self.offsets, self.sizes, self.buffer.array.shape, strict=True)):
            if isinstance(start, ReadIndex) and start + (size == 1) > whole:
                raise fail(f"a tile starts at {start} on axis {axis} of {self.buffer.describe()}, which has 0..{whole - 1}",
                           "check the number that was read; if it may lie outside, put the statement under an if", "T502")
        if 0 in sizes:  # the tile is entirely past the end
            return np.empty((0,) * self.ndim, self.buffer.array.dtype), (0,) * self.ndim
        return self._cut(sizes), tuple(sizes[axis] for axis in self.kept)

    def _cut(self, sizes: Sequence[int]) -> Array:
        found: Array = self.buffer.array[tuple(
            slice(start, start + size) if axis in self.kept else start
            for axis, (start, size) in enumerate(zip(self.offsets, sizes, strict=True)))]
        return found

    def with_axes(self, kept: Sequence[int]) -> TileRef:
        """Returns the same tile with ``kept`` as its axes."""
        return HostSlice(self.buffer, self.offsets, self.sizes, kept)

    def squeezed(self) -> TileRef:
        """Returns the tile without its axes of size 1; if all axes have size 1, one axis is kept."""
        kept = [axis for axis in self.kept if self.sizes[axis] != 1]
        return self.with_axes(kept or list(self.kept[-1:]) or [len(self.sizes) - 1])

    def resized(self, extents: Sequence[int]) -> TileRef:
        """Returns the tile with the same first element and the given size of each axis."""
        sizes = list(self.sizes)
        for axis, size in zip(self.kept, extents, strict=True):
            sizes[axis] = size
        return HostSlice(self.buffer, self.offsets, sizes, self.kept)

    def right_aligned(self, sizes: Sequence[int]) -> TileRef:
        """Returns the tile with the same first element in which the last axes of the buffer have ``sizes``, and all others size
        1.

        Raises:
            TileError: T131, there are more sizes than axes.
        """
        rank, given = len(self.offsets), list(sizes)
        while len(given) > rank and given[0] == 1:
            given.pop(0)
        if len(given) > rank:
            raise fail(f"{len(given)} sizes are given for {self.describe()}", "give one size per axis", "T131")
        return HostSlice(self.buffer, self.offsets, [1] * (rank - len(given)) + given, range(rank))

    def flat(self) -> Array:
        """Returns the buffer's elements from the tile's first element to the end of the buffer, in row-major order.

        The result is an array that shares the buffer's memory.
        """
        self.buffer.receive()
        array = self.buffer.array
        return array.reshape(-1)[int(np.ravel_multi_index(self.offsets, array.shape)):]

    def __array__(self, kind: DTypeLike | None = None, copy: bool | None = None) -> Array:
        found = self.view()
        return found.astype(kind) if kind is not None else found.copy() if copy else found

    def __getattr__(self, name: str) -> object:
        if name.startswith("_") or name in ("buffer", "array", "offsets", "sizes", "kept"):
            raise AttributeError(name)
        return getattr(self.view(), name)

    def __getitem__(self, items: object) -> TileRef | HostElement:
        return subscript(self, items if isinstance(items, tuple) else (items,))

    def __setitem__(self, items: object, value: object) -> None:
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
    """A global tensor or an on-chip buffer.

    Attributes:
        array: the elements.
        element: the element type.
        label: the name of the buffer in the kernel's source.
        memory: ``gm``, ``ub``, ``l1``, ``l0a``, ``l0b``, ``l0c`` or ``local``; or ``shared`` or ``fragment`` if the buffer's
            uses determine the memory.
        named: whether an assignment has given the buffer its name.
        own: whether each core has a separate instance of the buffer.
        root: the buffer of which this one is a view; the buffer itself if it is no view.
        key: identifies the allocation: the allocating statement, and the number of earlier allocations by that statement.
        operation: the operation that combines values with the elements of a reducer; empty for other buffers.
        valid: the number of elements along each axis that are not padding of a load; None if all are elements of a tensor, or
            if the launch does not follow padding.
        safe_value: the value of elements outside of a global tensor that are read; None for 0, past the tensor's end only.
        pending: the tiles that another core has sent to this buffer and that were not received yet, each as (queue, destination
            tile, conversion function).
    """

    operation = ""
    safe_value: Values | None = None
    valid: tuple[int, ...] | None = None

    def __init__(self, array: Array, element: DType, memory: str, label: str = "buffer", key: object = None) -> None:
        self.array, self.element, self.memory, self.label, self.key = array, element, memory, label, key
        self.named, self.own = False, True
        self.root = self.buffer = self
        self.offsets, self.sizes, self.kept = (0,) * array.ndim, array.shape, tuple(range(array.ndim))
        self.pending: list[tuple[list[Array], TileRef, Callable[[Array], Array]]] = []

    @property
    def is_global(self) -> bool:
        """Whether the buffer is in global memory."""
        return self.memory == "gm"

    @property
    def is_shared(self) -> bool:
        """Whether cores share the buffer."""
        return not self.own or self.space == "gm"

    def widen(self) -> None:
        """Makes an accumulator of float16 or bfloat16, which kernels for a GPU have, one of float32: the Cube core adds in
        float32."""
        if str(self.element) in ("float16", "bfloat16") and self.memory in ("fragment", "l0c") and self.root is self:
            self.array, self.element = self.array.astype(np.float32), DType("float32")

    def seen(self, array: Array, element: DType) -> HostBuffer:
        """Returns a buffer with the same memory and another shape or element type.

        Args:
            array: the elements, which must be a view of this buffer's array.
            element: the element type.
        """
        made = HostBuffer(array, element, self.memory, self.label)
        made.root, made.own = self.root, self.own
        return made

    def receive(self) -> None:
        """Waits for the tiles that another core sends to this buffer, and stores them."""
        pending, self.root.pending = self.root.pending, []
        for queue, target, converted in pending:
            if not queue:
                current().launch.schedule.wait(current(), partial(bool, queue), f"a tile for {target.describe()}")
            target.view()[...] = converted(queue.pop(0))


class ScalarVariable(HostBuffer, Operators):
    """The variable of a ``T.alloc_var``: one element, which the kernel reads and writes by the variable's name.

    Attributes:
        lanes: inside a ``T.Parallel`` that is executed on arrays, the value at each point of the loop; None if the loop has not
            assigned the variable.
    """

    def __init__(self, element: DType) -> None:
        super().__init__(np.zeros(1, element.numpy), element, "local", "variable")
        self.lanes: TypedScalar | None = None

    __hash__ = object.__hash__
    __array_ufunc__ = None

    def load(self) -> TypedScalar:
        """Returns the value of the variable."""
        points = running_points()
        if points is not None:
            if self.lanes is not None:
                return self.lanes
            points.read_before_written(self)
        return TypedScalar(self.array[0], self.kind)

    def store(self, value: object) -> None:
        """Assigns a value to the variable, converted to the variable's type."""
        points, made = running_points(), stored(value, self.kind)
        if points is None:
            self.array[0] = made
        else:
            points.assign(self, made)

    def __getitem__(self, items: object) -> ScalarVariable:
        return self

    def __setitem__(self, items: object, value: object) -> None:
        self.store(value)

    def __len__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return str(self.load().value)


class HostSlice(TileRef):
    """A slice of a buffer."""

    def __init__(self, buffer: HostBuffer, offsets: Sequence[int], sizes: Sequence[int], kept: Sequence[int]) -> None:
        self.buffer, self.offsets, self.sizes, self.kept = buffer, tuple(offsets), tuple(sizes), tuple(kept)


class HostElement(Operators, Reference):
    """An element ``A[i, j]`` of a buffer, or the first element of a tile.

    Attributes:
        buffer: the buffer.
        indices: the index along each axis: an integer, or a scalar with one integer for each point of a ``T.Parallel``.
    """

    __slots__ = ("buffer", "indices")

    def __init__(self, buffer: HostBuffer, indices: Sequence[Index]) -> None:
        self.buffer, self.indices = buffer, tuple(indices)

    def describe(self) -> str:
        """Returns a description of the element, for error messages."""
        return f"an element of {self.buffer.describe()}"

    def load(self) -> TypedScalar:
        """Reads the element and returns its value."""
        points = running_points()
        self.buffer.receive()
        current().touches(shared=self.buffer.is_shared)
        if points is not None:
            return TypedScalar(points.load(self.buffer, self.indices), self.kind)
        place = self._place(self.buffer.safe_value is not None)
        core = current()
        if core.polls and self.buffer.is_global and place is not None:
            array = self.buffer.array[tuple(slice(index, index + 1) for index in place)]
            core.before_read(array, self.buffer.label)
            value = TypedScalar(self.buffer.array[place], self.kind)
            have_polled(array, (core.kind, core.block, core.vector))
            return value
        if place is None:
            safe = self.buffer.safe_value
            return TypedScalar(self.kind.numpy.type(0) if safe is None else safe, self.kind)
        return TypedScalar(self.buffer.array[place], self.kind)

    def store(self, value: object) -> None:
        """Writes a value to the element, converted to the element type."""
        points = running_points()
        self.buffer.receive()
        if not current().touches(shared=self.buffer.is_shared, writes=True):
            return
        if points is not None:
            launch_buffers().before_write(self.buffer)
            points.store(self.buffer, self.indices, stored(value, self.kind))
        elif (place := self._place()) is not None:
            launch_buffers().before_write(memory_of(self))
            if self.buffer.is_global:
                current().acts()
            self.buffer.array[place] = stored(value, self.kind)

    def start(self) -> tuple[int, ...]:
        """Returns the indices as Python integers.

        Raises:
            NeedsPoints: an index has one value for each point of a ``T.Parallel``.
        """
        return tuple(index if isinstance(index, ReadIndex) else int(index) for index in self.indices)

    def _place(self, outside: bool = False) -> tuple[int, ...] | None:
        """Returns the indices; None in a ``T.Parallel`` if the element lies past the end of a tensor.

        With ``outside``, None also if it lies before the beginning, and not only in a ``T.Parallel``.
        """
        place = self.start()
        clips = self.buffer.is_global and current().in_parallel
        is_past_end = False
        for axis, (index, size) in enumerate(zip(place, self.buffer.array.shape, strict=True)):
            if (clips and index >= size) or (outside and not 0 <= index < size):
                is_past_end = True
            elif not 0 <= index < size:
                raise fail(f"index {index} is outside axis {axis} of {self.buffer.describe()}", f"valid are 0 to {size - 1}",
                           "T130")
        return None if is_past_end else place

    def __repr__(self) -> str:
        return str(self.load().value)

    def __format__(self, layout: str) -> str:
        return format(self.load(), layout)


class AbsentTensor(TileRef):
    """A tensor for which the caller passed None. Every use of it in the kernel is an error."""

    def __init__(self, tensor: str) -> None:
        self._tensor = tensor

    def __getattr__(self, name: str) -> NoReturn:
        raise fail(f"the kernel uses {self._tensor}, for which the call passes None", "pass an array", "T405")


def stored(value: object, kind: DType) -> Values:
    """Returns a value converted to the element type ``kind``, as a store to a buffer converts it."""
    if is_literal(value):
        made: Values = kind.numpy.type(value) if not kind.is_integer else np.asarray(int(value)).astype(kind.numpy)[()]
        return made
    return convert(scalar(value).value, kind, mode_to_integer())


def integer(value: object) -> int:
    """Returns a size, an offset or an index as a Python integer.

    Raises:
        NeedsPoints: the value is a scalar with one value for each point of a ``T.Parallel``.
        TileError: T110, the value is not an integer.
    """
    if type(value) is int or type(value) is ReadIndex:
        return value
    if not isinstance(value, (bool, np.bool_, float, np.floating)) and hasattr(value, "__index__"):
        try:
            found: int = value.__index__()
            return found
        except TypeError:
            pass
    raise fail(f"an index or a size must be an integer, not {value!r}", "use // instead of /, or T.cast(x, 'int32')", "T110")


def subscript(memory: TileRef, items: Sequence[object]) -> HostElement | HostSlice:
    """Returns ``memory[items]``: an element if every axis has an index, otherwise a slice.

    Axes without an item are included as a whole.

    Args:
        memory: the buffer or slice.
        items: an index or a Python ``slice`` for each of the first axes.

    Raises:
        TileError: T111, there are more items than axes; T110, an index is not an integer; T130, a slice is not valid.
    """
    if len(items) > memory.ndim:
        raise fail(f"{memory.describe()} has {memory.ndim} axes, {len(items)} indices are given", "give one index per axis")
    offsets: list[Index] = list(memory.offsets)
    sizes, kept = list(memory.sizes), list(memory.kept)
    for axis, item in zip(memory.kept, items, strict=False):
        if isinstance(item, slice):
            start = 0 if item.start is None else integer(item.start)
            stop = sizes[axis] if item.stop is None else integer(item.stop)
            if stop < start or start < 0 or item.step not in (None, 1):
                raise fail(f"the slice {start}:{stop} of axis {axis} of {memory.describe()} is not valid",
                           "write start:end, with 0 <= start <= end and without a step", "T130")
            first = memory.offsets[axis] + start
            offsets[axis] = ReadIndex(first) if _is_read(item.start) else first
            sizes[axis] = stop - start
        else:
            offsets[axis] = _place(item, memory.offsets[axis])
            sizes[axis] = 1
            kept.remove(axis)
    if not kept and len(items) == memory.ndim:
        return HostElement(memory.buffer, offsets)
    return HostSlice(memory.buffer, [integer(offset) for offset in offsets], sizes, kept)


def _place(item: object, offset: int) -> Index:
    """Returns an index plus an offset as an integer, or as a scalar with one integer for each point of a ``T.Parallel``."""
    if isinstance(item, Operators):
        found = scalar(item)
        if np.ndim(found.value) and found.kind.is_integer:
            span = found.span and found.span._replace(first=found.span.first + offset)
            return TypedScalar(np.add(found.value.astype(np.int64), offset), INDEX, span)
    place = integer(item) + offset
    return ReadIndex(place) if _is_read(item) else place


def _is_read(index: object) -> bool:
    """Whether an index is an element of a buffer, or a name to which one was assigned. A scalar variable may count anything."""
    element = origin_of(index)
    return isinstance(element, HostElement) and element.buffer.memory != "local"


def is_tile(value: object) -> TypeGuard[TileRef]:
    """Whether the value is a buffer or a slice, and not a variable."""
    return isinstance(value, TileRef) and not isinstance(value, ScalarVariable)


def origin_of(value: object) -> object:
    """Returns the element from which an assignment read a scalar; any other value is returned unchanged."""
    return value.origin if isinstance(value, TypedScalar) and value.origin is not None else value


def operand(value: object, what: str = "an operand") -> TileRef | HostElement:
    """Returns an operand: a buffer, a slice, or an element, which states the first element of a tile.

    Args:
        value: the operand.
        what: the name of the operand in error messages.

    Raises:
        TileError: T110, the operand is none of these.
    """
    place = origin_of(value)
    if is_tile(place) or isinstance(place, HostElement):
        return place
    raise fail(f"{what} must be a buffer, a slice or an element, not {value!r}", "write a buffer, A[i:j, :] or A[i, j]", "T110")


def require_scope(*memories: TileRef) -> None:
    """Checks that an operation on tiles is not in the ``T.Scope`` of the core that does not have their memory.

    Raises:
        TileError: T247, it is.
    """
    scope, spaces = current().scope, {memory.space for memory in memories}
    kinds = [kind for kind, has in (("vector", "ub" in spaces), ("cube", spaces & CUBE_MEMORIES)) if has]
    if scope is not None and kinds and scope not in kinds:
        own = kinds[0].capitalize()
        raise fail(f"this statement belongs to the {own} core, but is in a T.Scope of the other core",
                   f"move it into `with T.Scope({own[0]!r}):`", "T247")


def memory_of(value: object, what: str = "an operand") -> TileRef:
    """Returns an operand as a buffer or a slice, see :func:`operand`; an element becomes a slice of one element."""
    place = operand(value, what)
    if isinstance(place, TileRef):
        return place
    rank = len(place.indices)
    return HostSlice(place.buffer, place.start(), (1,) * rank, range(rank))


# --- the buffers of a launch ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Write:
    """A write to a watched element: the author's line, the block that wrote, and the written tile as text."""

    line: Location | None
    block: int
    tile: str


WATCHED: ContextVar[tuple[str, tuple[int, ...], list[Write]] | None] = ContextVar("tilelang_npu_watched_element", default=None)
"""The watched element, by the name of the parameter and the index, and the list that collects the writes to it; None for none.
"""


class LaunchBuffers:
    """The buffers that the cores of a launch share, and the record of what was written.

    Attributes:
        roles: for each allocating statement with an open memory, the memory that the uses of its buffers require.
        shared: the on-chip buffers that cores share, by block and allocating statement.
        addressed: the memories in which ``T.annotate_address`` has placed buffers, by name: those of a core, by core, and those
            that the cores of a block share, by the block's index.
        tensors: the global tensors that the kernel allocates, by allocating statement.
        written: the on-chip buffers that have been written.
        mask_tails: whether reductions leave out the padding of tiles that reach past the end of a tensor.
        before: as long as the execution may have to be restarted with concurrent cores, the global tensors that were written,
            with their contents before; then None.
    """

    def __init__(self, *, mask_tails: bool = False) -> None:
        self.mask_tails = mask_tails
        self.roles: dict[object, str] = {}
        self.shared: dict[object, HostBuffer] = {}
        self.addressed: dict[object, dict[str, _Addressed]] = {}
        self.tensors: dict[object, HostBuffer] = {}
        self.written: set[HostBuffer] = set()
        self.before: list[tuple[Array, Array]] | None = []

    def before_write(self, memory: TileRef, valid: tuple[int, ...] | None = None) -> None:
        """Records that a tile is about to be written.

        Args:
            memory: the tile.
            valid: as ``HostBuffer.valid``, after the write.
        """
        buffer = memory.buffer
        if buffer.space != "gm":
            self.written.add(buffer.root)
            buffer.root.valid = valid
            return
        watched = WATCHED.get()
        if watched is not None and buffer.label == watched[0] and all(
                start <= at < start + size for start, size, at in zip(memory.offsets, memory.sizes, watched[1], strict=True)):
            tile = ", ".join(f"{start}:{start + size}" for start, size in zip(memory.offsets, memory.sizes, strict=True))
            watched[2].append(Write(current().location(), current().block, f"{buffer.label}[{tile}]"))
        if self.before is not None and all(array is not buffer.array for array, _ in self.before):
            self.before.append((buffer.array, buffer.array.copy()))


def valid_after(target: TileRef, *sources: TileRef) -> tuple[int, ...] | None:
    """Returns ``HostBuffer.valid`` after a write of all elements of the target, each from those at its place in the sources.
    """
    if not isinstance(target, HostBuffer) or target is not target.root:
        return None
    known = [source.valid for source in sources
             if isinstance(source, HostBuffer) and source.valid is not None and source.sizes == target.sizes]
    return tuple(map(min, zip(*known, strict=True))) if known else None


def launch_buffers() -> LaunchBuffers:
    """Returns the buffers of the launch that this thread executes."""
    found = current().launch
    assert isinstance(found, LaunchBuffers)
    return found


class TileChannels:
    """The channels of a launch, by the statement that allocates their buffer.

    A *channel* is a tile that one core reads at an earlier statement than the statement with which another core writes the
    tile. The k-th read of each reading statement waits until every element has been written k times. The k-th write of an
    element waits until each reading statement has read the tile k - 1 times.
    """

    def __init__(self) -> None:
        self._sites: dict[object, set[tuple[int, ...]]] = {}
        self._of: dict[HostBuffer, tuple[Array, dict[tuple[int, ...], int]]] = {}

    def open(self, key: object, site: tuple[int, ...]) -> None:
        """Declares that the buffers which a statement allocates are channels.

        Args:
            key: identifies the allocating statement.
            site: the lines of the statement that reads the channel.
        """
        self._sites.setdefault(key, set()).add(site)

    def is_open(self, key: object) -> bool:
        """Whether the buffers of the allocating statement ``key`` are channels."""
        return key in self._sites

    def _state(self, buffer: HostBuffer) -> tuple[Array, dict[tuple[int, ...], int]]:
        """Returns how often each element of a channel was written, and how often each statement has read the channel."""
        return self._of.setdefault(buffer, (np.zeros(buffer.array.shape, np.int64), dict.fromkeys(self._sites[buffer.key], 0)))

    def reads(self, core: Core, memory: TileRef) -> None:
        """Suspends a core that is about to read a tile of a channel, until the tile has been written for this read."""
        written, reads = self._state(memory.buffer.root)
        wanted, places = reads.get(core.site(), 0) + 1, _places(memory)
        core.launch.schedule.wait(core, lambda: bool((written[places] >= wanted).all()), f"{memory.describe()} to be written")
        reads[core.site()] = wanted

    def writes(self, core: Core, memory: TileRef) -> None:
        """Suspends a core that is about to write a tile of a channel, until the tile's earlier contents have been read.

        Has no effect if the buffer is not a channel.
        """
        if self.is_open(memory.buffer.root.key):
            written, reads = self._state(memory.buffer.root)
            places = _places(memory)
            core.launch.schedule.wait(core, lambda: min(reads.values()) >= written[places].max(initial=0),
                                      f"{memory.describe()} to be read")
            written[places] += 1


def _places(memory: TileRef) -> tuple[slice, ...]:
    return tuple(slice(start, start + size) for start, size in zip(memory.offsets, memory.sizes, strict=True))


# --- allocations ---------------------------------------------------------------------------------------------------------

POISON: ContextVar[tuple[float, int]] = ContextVar("tilelang_npu_poison", default=(float("nan"), -1))
"""The float and the integer with which newly allocated memory is filled. Results that depend on these values use unwritten
memory.
"""


def sizes_of(shape: object) -> tuple[int, ...]:
    """Returns a shape as Python integers; a single size becomes a shape with one axis."""
    return tuple(integer(size) for size in (shape if isinstance(shape, (tuple, list)) else (shape,)))


def _key_of_allocation(space: str) -> tuple[object, ...]:
    """Returns a key of the current allocation: the allocating statement, and how often it has allocated in this block before.
    """
    core = current()
    site = (core.site(), space)
    number = core.allocated[site] = core.allocated.get(site, 0) + 1
    return (*site, number)


def allocate(shape: object, kind: object, space: str) -> HostBuffer:
    """Allocates an on-chip buffer and returns it.

    Cores that run concurrently share buffers in the memories of the Cube core; each has its own buffers in other memories.

    Args:
        shape: the shape.
        kind: the element type.
        space: the memory.
    """
    core, launch, element, sizes = current(), launch_buffers(), element_type(kind), sizes_of(shape)
    number, whole = POISON.get()
    array = np.full(sizes, number if element.is_float else whole).astype(element.numpy)
    key = _key_of_allocation(space)
    if current_heap() is not None:
        core.arrays.append(array)
    if core.kind == "all":
        return HostBuffer(array, element, space, key=key)
    space = launch.roles.get(key, "ub" if space in ("shared", "fragment") else space)
    made = HostBuffer(array, element, space, key=key)
    if space in ("ub", "local"):
        return made
    made.own = False
    return launch.shared.setdefault((core.block, key), made)


def _alloc(space: str, shape: object, dtype: object, scope: str = "") -> HostBuffer:
    return allocate(shape, dtype, "l1" if scope == "shared.l1" else space)


OPERATIONS.update({f"alloc_{name}": partial(_alloc, name.lower())
                   for name in ("shared", "fragment", "ub", "L1", "L0A", "L0B", "L0C", "local")})
OPERATIONS["alloc_frag"] = OPERATIONS["alloc_fragment"]


@tiles("alloc_global")
def alloc_global(shape: object, dtype: object, scope: str = "global") -> HostBuffer:
    """Returns a tensor in GM that all cores and blocks of the launch share (``T.alloc_global``)."""
    key, tensors, kind = _key_of_allocation("gm"), launch_buffers().tensors, element_type(dtype)
    if key not in tensors:
        tensors[key] = HostBuffer(np.zeros(sizes_of(shape), kind.numpy), kind, "gm", "tensor")
    return tensors[key]


def _alloc_var(dtype: object, *arguments: object, scope: str = "local.var", init: object = None) -> ScalarVariable:
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
    """Places buffers at byte addresses of their memories (``T.annotate_address``); buffers that overlap share bytes."""
    core, launch = current(), launch_buffers()
    for buffer, address in address_map.items():
        space = {"shared": "ub", "fragment": "ub"}.get(buffer.space, buffer.space)
        owner: object = core if space == "ub" or core.kind == "all" else core.block
        launch.addressed.setdefault(owner, {}).setdefault(space, _Addressed()).place(buffer, address)


@known("annotate_safe_value")
def annotate_safe_value(safe_value_map: Mapping[HostBuffer, object]) -> None:
    """Gives elements outside of global tensors the value that they have when they are read."""
    for tensor, value in safe_value_map.items():
        tensor.safe_value = stored(value, tensor.kind)


@known(
    "annotate_compile_flags", "annotate_consumer_reg_alloc", "annotate_l2_hit_ratio", "annotate_layout",
    "annotate_min_blocks_per_sm", "annotate_pass_configs", "annotate_producer_reg_dealloc", "annotate_restrict_buffers",
    "assume", "cp_async_wait_group", "dec_max_nreg", "disable_warp_group_reg_alloc", "fence_proxy_async", "func_attr",
    "inc_max_nreg", "no_set_max_nreg", "pdl_sync", "pdl_trigger", "ptx_commit_group", "ptx_wait_group", "set_max_nreg",
    "sync_threads", "sync_warp", "warpgroup_fence_operand")
def without_effect(*_: object, **__: object) -> None:
    """Does nothing: the operation does not affect the kernel's results."""


# --- the same memory under another shape or type -----------------------------------------------------------------------------


@tiles("reinterpretcast")
def reinterpretcast(dst: HostBuffer, src: HostBuffer, casttype: str) -> None:
    """Makes ``dst`` a view of the memory of ``src``, whose bits are interpreted as the element type of ``dst``."""
    flat = src.array.reshape(-1).view(np.uint8)
    if dst.array.nbytes > flat.size and dst.array.ndim == 1:
        dst.array = dst.array[:flat.size // dst.array.itemsize]
        dst.sizes = dst.array.shape
    if dst.array.nbytes > flat.size:
        raise fail(f"T.reinterpretcast: {dst.describe()} is longer than {src.describe()}",
                   "the destination must not have more bytes than the source", "T110")
    dst.array = flat[:dst.array.nbytes].view(dst.array.dtype).reshape(dst.array.shape)
    dst.root, dst.own = src.root, src.own


@tiles("view", "view_experiment")
def view(src: object, shape: object = None, dtype: object = None) -> HostBuffer:
    """Returns a view of a buffer with another shape, or with its bits interpreted as another element type."""
    found = memory_of(src)
    array, element = found.view(), found.kind if dtype is None else element_type(dtype)
    if not array.flags.c_contiguous:
        raise fail(f"{found.describe()} has gaps between its rows", "T.copy it to a buffer, and take the view of this buffer")
    bits, sizes = array.reshape(-1).view(element.numpy), found.extents if shape is None else sizes_of(shape)
    if bits.size != math.prod(sizes):
        raise fail(f"{found.describe()} has another number of elements than the shape {list(sizes)}",
                   "give a shape with the same number of elements")
    return found.buffer.seen(bits.reshape(sizes), element)


@tiles("vbitcast", "npuir_bitcast")
def bitcast(src: object, dtype: object, size: object = None) -> HostBuffer:
    """Returns a view of a buffer with its bits interpreted as another element type, which must have the same width."""
    found = memory_of(src) if size is None else memory_of(src).right_aligned(sizes_of(size))
    return found.buffer.seen(found.view().view(element_type(dtype).numpy), element_type(dtype))


@tiles("reshape", "npuir_reshape")
def reshape(src: object, shape: object = None, dst: object = None) -> HostBuffer | None:
    """Returns a view of a buffer with another shape (``T.reshape(buffer, shape)``), or copies a buffer to a buffer with another
    shape (``T.reshape(src, dst)``)."""
    other = shape if dst is None else dst
    if not isinstance(other, TileRef):
        return view(src, other)
    if current().executes("cube" if other.space in ("l1", "l0c") else "vector"):
        other.view()[...] = memory_of(src).view().reshape(other.extents)
    return None
