"""Memrefs during code generation: offset, sizes and strides as expressions, element types, and numbers of on-chip buffers.

The generated code creates a NumPy array for a memref only where an op needs one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import IntegerType, MemRefType, Signedness
from xdsl.ir import Attribute

from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.errors import TileError
from tilelang_npu.linear import ANY, Interval
from tilelang_npu.simulator.codegen.code_scopes import Int, ScalarExpr
from tilelang_npu.simulator.machine.op_records import Access, OpRecord
from tilelang_npu.target import name_of
from tilelang_npu.target.chip_data import Space
from tilelang_npu.target.dtypes import DType


@dataclass(frozen=True)
class Base:
    """The memory in which a memref lies (a kernel argument in GM, or an on-chip memory), and the buffer that it belongs to.

    Attributes:
        memory: ``gm``, or the address space of the on-chip memory.
        buffer: the position of the kernel argument in GM; 0 on chip.
        name: the variable of the generated code that holds the bytes of the memory.
        size: the size of the memory in bytes; None where it is not known.
        label: the user's name of the buffer or tensor.
        holder: the core of the block that owns the memory, if it is not the core that the code is for; otherwise empty.
        owner: the number of the on-chip buffer, by which buffers of one memory are told apart; None in GM. Buffers that memory
            planning has numbered have its number, the others a number from ``BufferNumbers``.
        planned: whether memory planning chose the address of the buffer.
        made_for: the user's buffer whose tile the compiler's temporary holds; empty for a buffer of the user.
    """

    memory: Space
    buffer: int
    name: str
    size: int | None
    label: str = field(default="", compare=False)
    holder: str = ""
    owner: int | None = field(default=None, compare=False)
    planned: bool = field(default=False, compare=False)
    made_for: str = field(default="", compare=False)


def of_vector_core(buffer: Buffer, sub: int) -> Buffer:
    """Returns a memref with the same offset, sizes and strides in the memory of Vector core number ``sub`` of the block."""
    def there(view: StridedView) -> StridedView:
        name = view.base.name + (f"_{sub}" if sub else "")
        return replace(view, base=replace(view.base, name=name, holder=f"AIV{sub}"))

    return mapped(buffer, there)


def spoken(base: Base) -> str:
    """Returns the name of a memory in messages, such as ``UB``."""
    return name_of(base.memory)


def called(base: Base, *, whole: bool) -> str:
    """Returns the name of a memref's memory or buffer in messages: the user's name of a tensor or buffer, or ``UB``.

    Args:
        base: the memory and the buffer.
        whole: whether the on-chip memory as a whole is meant, and not the buffer.
    """
    if base.memory == "gm":
        return base.label or f"arg{base.buffer}"
    if base.made_for and not whole:
        return f"the temporary tile of {base.made_for}"
    return spoken(base) if whole or not base.label else base.label


@dataclass(frozen=True)
class Cut:
    """A slice of an axis that is not known to lie inside the axis.

    Elements before the start or after the end of the axis would be elements of another row.

    Attributes:
        axis: the axis as messages name it: ``axis 0``, or ``the rows`` or ``the columns`` of a matrix in fractals.
        start: the first element of the slice.
        reach: the index after the last element of the slice; None if the end is known to lie inside the axis.
        extent: the number of elements of the axis.
        read: whether ``start`` is the part of the slice's start that the kernel has read as data, and ``reach`` the index after
            the last element that must be inside the axis. This is checked also where the slice is clipped to no elements.
    """

    axis: str
    start: Int
    reach: Int | None
    extent: Int
    read: bool = False


@dataclass(frozen=True)
class StridedView:
    """A memref as a strided view of the bytes of a memory.

    Attributes:
        base: the memory.
        element: the element type.
        origin: the byte offset of the memref's base pointer in the memory.
        offset: the byte offset of the first element in the memory.
        sizes: the number of elements along each axis.
        strides: the bytes between neighbouring elements along each axis.
        limit: the byte offset of the buffer that the view belongs to, and of the byte after the buffer's last one; None if they
            are not known.
        cuts: the slices by which the view was derived, but only those that are not known to lie inside their axis.
    """

    base: Base
    element: DType
    origin: Int
    offset: Int
    sizes: tuple[Int, ...]
    strides: tuple[Int, ...]
    limit: tuple[int, int] | None = None
    cuts: tuple[Cut, ...] = ()

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.sizes)

    @property
    def static(self) -> bool:
        """Whether offset, sizes and strides are all constants."""
        return all(part.known for part in (self.offset, *self.sizes, *self.strides))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The sizes of the axes if all are constants; otherwise None."""
        if all(size.known for size in self.sizes):
            return tuple(size.constant for size in self.sizes)
        return None


@dataclass(frozen=True)
class Choice:
    """A memref that is selected at run time: ``true`` if ``condition`` holds, otherwise ``false``."""

    condition: ScalarExpr
    true: Buffer
    false: Buffer

    @property
    def element(self) -> DType:
        """The element type, which both memrefs have."""
        return self.true.element

    @property
    def base(self) -> Base:
        """The memory and the buffer of ``true``."""
        return self.true.base

    @property
    def rank(self) -> int:
        """The number of axes, which both memrefs have."""
        return self.true.rank


@dataclass(frozen=True)
class Local:
    """Scalar storage of a core (``memref.alloca``): in generated code, a Python list of the elements in row-major order.

    Attributes:
        name: the variable that holds the list.
        element: the element type.
        shape: the number of elements along each axis.
    """

    name: str
    element: Attribute
    shape: tuple[int, ...]


Buffer = StridedView | Choice


def mapped(buffer: Buffer, change: Callable[[StridedView], StridedView]) -> Buffer:
    """Returns a memref in which ``change`` is applied to each of the views between which the memref is selected at run time."""
    if isinstance(buffer, Choice):
        return replace(buffer, true=mapped(buffer.true, change), false=mapped(buffer.false, change))
    return change(buffer)


def alternatives(buffer: Buffer) -> list[StridedView]:
    """Returns the views between which a memref is selected at run time; one view if there is no selection."""
    if isinstance(buffer, Choice):
        return [*alternatives(buffer.true), *alternatives(buffer.false)]
    return [buffer]


def element_of(kind: Attribute) -> DType:
    """Returns the element type of a memref or scalar type.

    Raises:
        TileError: T501, the op tables have no such element type.
    """
    element = kind.element_type if isinstance(kind, MemRefType) else kind
    try:
        return dtype_of(element)
    except ValueError:
        raise TileError(f"the simulator does not support element type {element}", code="T501") from None


def bounds(kind: Attribute) -> Interval:
    """Returns the range of values of an integer type.

    The range of ``index`` is unbounded, because integers of this type do not overflow in the simulator.
    """
    if isinstance(kind, IntegerType):
        return Interval.of_bits(kind.width.data, signed=kind.signedness.data is not Signedness.UNSIGNED)
    return ANY


_Buffer = tuple[str, int]
"""The memory of a buffer, and the buffer's number in it."""


class BufferNumbers:
    """Gives numbers to the on-chip buffers of one function that memory planning has not numbered.

    These numbers are negative; those of memory planning begin at 0.
    """

    def __init__(self) -> None:
        self._count = 0
        self._joined: dict[_Buffer, _Buffer] = {}

    def fresh(self) -> int:
        """Returns a new buffer number."""
        self._count += 1
        return -self._count

    def join(self, views: Iterable[StridedView]) -> None:
        """Records that the buffers of these views are slots of one multi-buffer and have one number."""
        buffers = sorted({self._representative((view.base.memory, view.base.owner)) for view in views
                          if view.base.owner is not None})
        for buffer in buffers[:-1]:
            self._joined[buffer] = buffers[-1]

    def renumbered(self, record: OpRecord) -> OpRecord:
        """Returns a copy of a record in which all slots of a multi-buffer have the same number."""
        accesses = tuple(map(self._renumbered, record.accesses)) if self._joined else record.accesses
        return record if accesses == record.accesses else replace(record, accesses=accesses)

    def _renumbered(self, access: Access) -> Access:
        if access.owner is None:
            return access
        return replace(access, owner=self._representative((access.memory, access.owner))[1])

    def _representative(self, buffer: _Buffer) -> _Buffer:
        while buffer in self._joined:
            buffer = self._joined[buffer]
        return buffer
