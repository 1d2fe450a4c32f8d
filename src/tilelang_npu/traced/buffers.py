"""Buffers, their slices and their elements while a kernel is traced."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from xdsl.dialects import memref
from xdsl.dialects.builtin import StringAttr, UnrealizedConversionCastOp
from xdsl.ir import SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text.names import escape_name
from tilelang_npu.errors import Location, TileError
from tilelang_npu.linear import Linear
from tilelang_npu.ops import DType
from tilelang_npu.target.chip_data import BufferSpace
from tilelang_npu.traced.active_trace import Scalar, TracedValue
from tilelang_npu.traced.author import refuse_python_value
from tilelang_npu.traced.conversions import Extent, convert, extent, number
from tilelang_npu.traced.emitter import Emitter
from tilelang_npu.traced.ir_types import element_type, scalar_type
from tilelang_npu.traced.kinds import INDEX
from tilelang_npu.traced.scalars import Expr, Place
from tilelang_npu.traced.symbols import Number, Sym


class Addressable(TracedValue, ABC):
    """The base class of buffers and slices of buffers.

    Attributes:
        buffer: the buffer itself, or the buffer of which this object is a slice.
        offsets: the index of the first element along each axis of ``buffer``.
        sizes: the number of elements along each axis of ``buffer``.
        kept: the axes of ``buffer`` that are axes of this object; along all other axes of ``buffer``, the size is 1.
    """

    buffer: Buffer
    offsets: tuple[Extent, ...]
    kept: tuple[int, ...]

    @property
    @abstractmethod
    def sizes(self) -> tuple[Extent, ...]:
        """The number of elements along each axis of ``buffer``, dropped axes included."""

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The size of each axis of this object: a number, or a traced scalar; use :func:`same_extent` to compare two sizes."""
        sizes = self.sizes
        return tuple(sizes[axis] for axis in self.kept)

    @property
    def shape(self) -> tuple[int | Sym | Expr, ...]:
        """The size of each axis as the kernel's author sees it: a number, a symbolic dimension or a traced scalar."""
        return self.extents

    def repair_as_scalar(self) -> str:
        """As for every traced object; for one element whose last indices are missing, the indices."""
        dropped = self.buffer.ndim - self.ndim
        if dropped and all(size == 1 for size in self.extents):
            missing = ", 0" * self.ndim
            return (f"{self.buffer.name} has {self.buffer.ndim} axes: write an index for each, "
                    f"{self.buffer.name}[{', '.join('ijklmn'[:dropped])}{missing}]")
        return super().repair_as_scalar()

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.kept)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.buffer.element

    @property
    def name(self) -> str:
        """The name of the buffer in the kernel's source."""
        return self.buffer.label

    @property
    def data(self) -> Addressable:
        """The object itself: ``T.Tensor(shape, dtype, A.data)`` returns a view of ``A`` with another shape."""
        return self

    def describe(self) -> str:
        """Returns the name, the shape and the element type, for error messages."""
        return f"{self.name} {shape_text(self.shape)} {self.dtype}"

    @abstractmethod
    def ssa(self, builder: Emitter) -> SSAValue:
        """Returns the memref value in the IR; for a slice, the operation that takes the slice is emitted."""

    def __getitem__(self, items: object) -> Any:  # an element or a slice
        return subscript(Emitter.running("a buffer's elements"), self, items if isinstance(items, tuple) else (items,))

    def __setitem__(self, items: object, value: object) -> None:
        place = self[items]
        if not isinstance(place, Element):
            raise TileError(f"cannot assign to the slice {place.describe()}", code="T141",
                            help="use T.fill to write one value to all elements, or T.copy to copy another buffer's elements")
        place.store(value)

    def __len__(self) -> int:
        size = self.shape[0]
        if not isinstance(size, int):
            refuse_python_value(f"the run-time size of {self.name}", "length", "use its shape[0] in the kernel")
        return size

    def __iter__(self) -> NoReturn:
        raise TileError(f"cannot iterate over {self.describe()}", code="T141",
                        help="loop with T.serial or T.Parallel and index it")

    def __bool__(self) -> bool:
        refuse_python_value(f"the buffer {self.name}", "truth value", "test one of its elements")


class Buffer(Addressable):
    """A global tensor or a buffer on chip.

    Attributes:
        label: the name of the buffer in the kernel's source.
        unnamed: whether the buffer has no name yet, because the assignment that names it has not been traced.
        element: the element type.
        dimensions: the size of each axis; only global tensors have symbolic sizes.
        space: the memory: ``gm``, ``ub``, ``cbuf``, ``cc``, ``ca`` or ``cb``; or ``shared``, ``fragment`` or ``local`` if the
            compiler chooses the memory.
        value: the memref value in the IR.
        location: the position of the declaration in the kernel's source.
        base: if the buffer is a view of another buffer as a single axis, that buffer; otherwise the buffer itself.
        has_gaps: whether it is a global tensor whose rows do not follow one another in memory.
        reinterpreted: the buffer whose memory it is by ``T.reinterpretcast``; None for other buffers.
        safe_value: the value of elements outside of a global tensor when they are read; None without
            ``T.annotate_safe_value``.
        guarded: a function that emits a load of an element which may be outside; None if there is no ``safe_value``.
    """

    safe_value: Expr | Number | None = None
    guarded: Callable[[Element], Expr] | None = None
    has_gaps = False
    reinterpreted: Buffer | None = None

    def __init__(self, label: str, element: DType, dimensions: Sequence[int | Sym], space: BufferSpace, value: SSAValue,
                 location: Location | None = None) -> None:
        self.label = label
        self.unnamed = False
        self.element = element
        self.dimensions = tuple(dimensions)
        self.space = space
        self.value = value
        self.location = location
        self.buffer = self
        self.base: Buffer = self
        self.offsets = (0,) * len(self.dimensions)
        self.kept = tuple(range(len(self.dimensions)))

    def rename(self, label: str, location: Location) -> None:
        """Sets the name of the buffer, and the position where an assignment in the kernel's source gives it that name."""
        self.label, self.location, self.unnamed = label, location, False
        owner = self.value.owner
        if isinstance(owner, tile.AllocOp):
            owner.properties["label"] = StringAttr(label)
        self.value.name_hint = escape_name(label)

    @property
    def shape(self) -> tuple[int | Sym | Expr, ...]:
        return self.dimensions

    @property
    def sizes(self) -> tuple[Extent, ...]:
        known = tuple(size for size in self.dimensions if isinstance(size, int))
        if len(known) == len(self.dimensions):
            return known
        current = Emitter.running("a buffer's size")
        return tuple(size if isinstance(size, int) else extent(current, size) for size in self.dimensions)

    def ssa(self, builder: Emitter) -> SSAValue:
        return self.value

    def __str__(self) -> str:
        return self.label

    __repr__ = __str__


class Variable(Buffer):
    """The buffer of a ``T.alloc_var``: it has one element, which the kernel reads and writes by the variable's name."""

    @property
    def place(self) -> Element:
        """The only element of the buffer."""
        return Element(self, (0,))


class Region(Addressable):
    """A slice of a buffer."""

    def __init__(self, buffer: Buffer, offsets: Sequence[Extent], sizes: Sequence[Extent], kept: Sequence[int]) -> None:
        self.buffer = buffer
        self.offsets = tuple(offsets)
        self._sizes = tuple(sizes)
        self.kept = tuple(kept)

    @property
    def sizes(self) -> tuple[Extent, ...]:
        return self._sizes

    def covers(self) -> bool:
        """Whether the slice is provably the whole buffer with all its axes."""
        if self.kept != self.buffer.kept or not all(isinstance(offset, int) and offset == 0 for offset in self.offsets):
            return False
        return all(same_extent(size, whole) for size, whole in zip(self._sizes, self.buffer.sizes, strict=True))

    def ssa(self, builder: Emitter) -> SSAValue:
        if self.covers():
            return self.buffer.value
        offsets, sizes = ([part if isinstance(part, int) else part.ssa(builder) for part in parts]
                          for parts in (self._in_bytes(builder, "start", self.offsets),
                                        self._in_bytes(builder, "size", self._sizes)))
        made = tile.RegionOp(self.buffer.value, offsets, sizes, self.kept)
        return builder.discardable(made).results[0]

    def _in_bytes(self, builder: Emitter, what: str, parts: tuple[Extent, ...]) -> tuple[Extent, ...]:
        """Returns offsets or sizes in elements of the memref: for 4 bits, which are packed, the last one counts bytes.

        Raises:
            TileError: T111, the last one is odd, and two elements are in one byte.
        """
        if not self.dtype.packed:
            return parts
        last = parts[-1]
        form = None if isinstance(last, int) else last.form
        if (isinstance(last, int) and last % 2) or (form is not None and form.known and form.constant % 2):
            raise TileError(f"the {what} of {self.describe()} along the last axis of {self.name} is odd, and a byte holds two"
                            f" elements of {self.dtype}", code="T111", help="slice pairs of elements")
        return (*parts[:-1], last // 2 if isinstance(last, int) else extent(builder, last // 2))

    def __str__(self) -> str:
        return f"{self.name}{shape_text(self.shape)}"

    __repr__ = __str__


class Element(Place):
    """An element ``buf[i, j]`` of a buffer.

    Used as a scalar, the element is read. As an operand of ``T.copy``, it states the first element of a tile.
    """

    __slots__ = ("buffer", "indices")

    def __init__(self, buffer: Buffer, indices: Sequence[Extent]) -> None:
        self.buffer = buffer
        self.indices = tuple(indices)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.buffer.element

    @property
    def name(self) -> str:
        """The name of the buffer in the kernel's source."""
        return self.buffer.label

    def describe(self) -> str:
        """Returns a description of the element, for error messages."""
        if isinstance(self.buffer, Variable):
            return f"{self.name} {self.dtype}"
        return f"element of {self.buffer.describe()}"

    def load(self) -> Expr:
        """Emits a load of the element at the current position and returns the loaded scalar."""
        return self.read() if self.buffer.guarded is None else self.buffer.guarded(self)

    def read(self) -> Expr:
        """As :meth:`load`, for an element that is inside of the buffer."""
        current = Emitter.running("an element")
        kind = self.buffer.element
        indices = [_position(current, index) for index in self.indices]
        made = current.discardable(memref.LoadOp.get(self.buffer.value, [index.ssa(current) for index in indices]))
        value = made.results[0]
        if kind.is_integer and not kind.is_signed:
            value = current.discardable(UnrealizedConversionCastOp.get([value], [scalar_type(kind)])).results[0]
        structure = ("load", id(self.buffer), tuple(index.form for index in indices if index.form is not None),
                     current.epoch)
        return current.scalar(value, kind, None if kind.is_float else current.atoms.of(structure))

    def store(self, value: object, *, atomic: str | None = None) -> None:
        """Emits a store to the element at the current position.

        Args:
            value: the value, which is converted to the element type.
            atomic: ``add``, ``max`` or ``min`` if the value is combined with the element atomically instead.

        Raises:
            TileError: T160, the statement is outside of ``T.Kernel``; T110, T141, the value cannot be converted.
        """
        current = Emitter.running("an element store")
        current.require_kernel(f"a store to {self.name}")
        kind = self.buffer.element
        stored = convert(current, number(current, value), kind, f"the value stored to {self.name}").ssa(current)
        if kind.is_integer and not kind.is_signed:
            stored = current.discardable(UnrealizedConversionCastOp.get([stored], [element_type(kind)])).results[0]
        indices = [_position(current, index).ssa(current) for index in self.indices]
        made = memref.StoreOp.get(stored, self.buffer.value, indices)
        if atomic is not None:
            made.attributes[tile.ATOMIC] = StringAttr(atomic)
        current.emit(made)

    def __str__(self) -> str:
        return self.describe()

    __repr__ = __str__


def _position(builder: Emitter, index: Extent) -> Expr:
    return builder.literal(index, INDEX) if isinstance(index, int) else index


def subscript(builder: Emitter, memory: Addressable, items: Sequence[object]) -> Element | Region:
    """Returns ``memory[items]``: an element if every axis has an index, otherwise a slice.

    Axes without an item are included as a whole.

    Args:
        builder: emits the computation of offsets.
        memory: the buffer or slice.
        items: an index or a Python ``slice`` for each of the first axes.

    Raises:
        TileError: T111, there are more items than axes; T130, a constant index is out of bounds, or a slice is empty; T141, a
            slice has a step, or an item is neither an index nor a slice.
    """
    if len(items) > memory.ndim:
        raise TileError(f"{memory.describe()} has {memory.ndim} axes, {len(items)} indices are given", code="T111",
                        help="give at most one index per axis")
    buffer = memory.buffer
    offsets, sizes, kept = list(memory.offsets), list(memory.sizes), list(memory.kept)
    for axis, item in zip(memory.kept, items, strict=False):
        size = sizes[axis]
        if isinstance(item, slice):
            start, length = _slice(builder, memory, axis, item, size)
            sizes[axis] = length
        else:
            if item is None or item is Ellipsis:
                raise TileError(f"index {item!r} is not supported", code="T141", help="write an index or a slice per axis")
            start = extent(builder, item)
            if isinstance(start, int):
                _check(memory, axis, start, 1, size)
            sizes[axis] = 1
            kept.remove(axis)
        base = offsets[axis]
        offsets[axis] = start if isinstance(base, int) and base == 0 else extent(builder, base + start)
    if not kept and len(items) == memory.ndim:
        return Element(buffer, offsets)
    return Region(buffer, offsets, sizes, kept)


def _slice(builder: Emitter, memory: Addressable, axis: int, item: slice, size: Extent) -> tuple[Extent, Extent]:
    if item.step is not None and not (isinstance(item.step, int) and item.step == 1):
        raise TileError("a slice with a step is not supported", code="T141", help="copy the rows one by one in a loop")
    start = 0 if item.start is None else extent(builder, item.start)
    stop = size if item.stop is None else extent(builder, item.stop)
    if isinstance(start, int) and start < 0:
        _outside(memory, axis, f"slice start {start}", size)
    if isinstance(stop, int) and stop < 0:
        _outside(memory, axis, f"slice end {stop}", size)
    length = difference(builder, stop, start)
    if isinstance(length, int):
        if length <= 0:
            end = "where" if length == 0 else f"{-length} before"
            raise TileError(f"slice of axis {axis} of {memory.describe()} is empty: it ends {end} it starts",
                            code="T130", help="a slice is start:end, with end greater than start")
        if isinstance(start, int):
            _check(memory, axis, start, length, size)
    return start, length


def difference(builder: Emitter, stop: Extent, start: Extent) -> Extent:
    """Returns ``stop - start``: a number if the difference is provably constant, otherwise a traced scalar."""
    if isinstance(stop, int) and isinstance(start, int):
        return stop - start
    a, b = (part.form if isinstance(part, Expr) else None for part in (stop, start))
    if a is not None and b is not None:
        distance = a - b
        if distance.known:
            return distance.constant
    return stop if isinstance(start, int) and start == 0 else extent(builder, stop - start)


def _check(memory: Addressable, axis: int, start: int, length: int, size: Extent) -> None:
    """Checks constant bounds: a slice of a global tensor must begin inside the tensor, a slice of a buffer on chip must be
    inside.
    """
    if start < 0 or (isinstance(size, int) and start >= size):
        _outside(memory, axis, f"index {start}" if length == 1 else f"slice start {start}", size)
    if isinstance(size, int) and memory.buffer.space != "gm" and start + length > size:
        _outside(memory, axis, f"slice end {start + length}", size)


def _outside(memory: Addressable, axis: int, what: str, size: Extent) -> NoReturn:
    valid = f"0 to {size - 1}" if isinstance(size, int) else f"0 to {memory.buffer.dimensions[axis]} - 1"
    if what.startswith("slice end"):
        valid = f"1 to {size}" if isinstance(size, int) else f"1 to {memory.buffer.dimensions[axis]}"
    raise TileError(f"{what} is outside axis {axis} of {memory.describe()}: valid are {valid}", code="T130",
                    help="a negative index does not count from the end; write the size minus it" if "-" in what else
                    "check the sizes that it is computed from, and the order of the indices")


def same_extent(left: Extent, right: Extent) -> bool | None:
    """Returns whether two sizes are equal; None if that is only known at run time."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    a, b = (part.form if isinstance(part, Expr) else Linear[int](part) for part in (left, right))
    return True if a is not None and a == b else None


def shape_text(shape: Sequence[object]) -> str:
    """Returns a shape as text for error messages, such as ``[64, M, ?]``; ``?`` is a size that is only known at run time."""
    return "[" + ", ".join(_size_text(size) for size in shape) + "]"


def _size_text(size: object) -> str:
    if isinstance(size, Expr):
        if size.symbol is not None:
            return str(size.symbol)
        return "?" if size.constant is None else str(size.constant)
    return str(size)


Tile = Addressable | Scalar
"""An operand that designates elements of a buffer: a buffer, a slice, an element, or a scalar that was assigned from an
element.
"""
Operand = Addressable | Number
"""An input operand of an operation: a buffer, a slice, or a scalar."""
Sizes = Sequence[Number]
"""A sequence with the size of each axis."""
