"""Memrefs during code generation: offset, sizes and strides as expressions, element types, and numbers of on-chip buffers.

An array is made only where an op needs one.
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
from tilelang_npu.target.dtypes import DType


@dataclass(frozen=True)
class Base:
    """A memory: ``gm`` with the position of a kernel argument, or an on-chip memory.

    Attributes:
        memory: ``gm`` or the address space.
        buffer: for GM, the position of the kernel argument.
        name: the name of its bytes in the generated code.
        size: bytes, where known.
        label: the user's name of the buffer or tensor.
        holder: the core of the block that owns the memory, if it is not the core that the code is for.
        owner: the number of an on-chip buffer among those of its memory (``BufferNumbers``); None for GM.
        planned: whether the planner chose its address.
    """

    memory: str
    buffer: int
    name: str
    size: int | None
    label: str = field(default="", compare=False)
    holder: str = ""
    owner: int | None = field(default=None, compare=False)
    planned: bool = field(default=False, compare=False)


def of_vector_core(buffer: Buffer, sub: int) -> Buffer:
    """Returns the same place in the memory of another Vector core of the block."""
    def there(view: StridedView) -> StridedView:
        name = view.base.name + (f"_{sub}" if sub else "")
        return replace(view, base=replace(view.base, name=name, holder=f"AIV{sub}"))

    return mapped(buffer, there)


def spoken(base: Base) -> str:
    """Returns the name of a memory in messages."""
    return name_of(base.memory)


def called(base: Base, *, whole: bool) -> str:
    """Returns the name in messages of a memory's bytes, or of those of one buffer in it."""
    if base.memory == "gm":
        return base.label or f"arg{base.buffer}"
    return spoken(base) if whole or not base.label else base.label


@dataclass(frozen=True)
class Cut:
    """A slice of an axis that may not be inside the axis; it would then reach into another row.

    Attributes:
        axis: the axis in messages: ``axis 0``, or the rows or columns of fractals.
        start: its first element.
        reach: one past its last element; None where the end is known to be inside.
        extent: elements of the axis.
    """

    axis: str
    start: Int
    reach: Int | None
    extent: Int


@dataclass(frozen=True)
class StridedView:
    """A strided part of a memory.

    Attributes:
        base: the memory.
        element: element type.
        origin: byte offset of the memref's base pointer.
        offset: byte offset of the first element.
        sizes: elements of each axis.
        strides: bytes between neighbouring elements of each axis.
        limit: first byte, and one past the last, of the buffer that the view belongs to, where known.
        cuts: the slices in its history that may leave their axis.
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
        return len(self.sizes)

    @property
    def static(self) -> bool:
        """Whether offset, sizes and strides are all constants."""
        return all(part.known for part in (self.offset, *self.sizes, *self.strides))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The sizes, if all are constants."""
        if all(size.known for size in self.sizes):
            return tuple(size.constant for size in self.sizes)
        return None


@dataclass(frozen=True)
class Choice:
    """One of two memrefs, selected by a condition."""

    condition: ScalarExpr
    true: Buffer
    false: Buffer

    @property
    def element(self) -> DType:
        return self.true.element

    @property
    def base(self) -> Base:
        return self.true.base

    @property
    def rank(self) -> int:
        return self.true.rank


@dataclass(frozen=True)
class Local:
    """Scalar storage of a core (``memref.alloca``): a Python list in row-major order."""

    name: str
    element: Attribute
    shape: tuple[int, ...]


Buffer = StridedView | Choice


def mapped(buffer: Buffer, change: Callable[[StridedView], StridedView]) -> Buffer:
    """Returns the memref with ``change`` applied to each alternative."""
    if isinstance(buffer, Choice):
        return replace(buffer, true=mapped(buffer.true, change), false=mapped(buffer.false, change))
    return change(buffer)


def alternatives(buffer: Buffer) -> list[StridedView]:
    """Returns the views that the memref may be."""
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
        raise TileError(f"the simulator has no elements of type {element}", code="T501") from None


def bounds(kind: Attribute) -> Interval:
    """Returns the range of an integer type; unbounded for ``index``, which does not overflow in the simulator."""
    if isinstance(kind, IntegerType):
        return Interval.of_bits(kind.width.data, signed=kind.signedness.data is not Signedness.UNSIGNED)
    return ANY


_Buffer = tuple[str, int]
"""The memory of a buffer, and the buffer's number in it."""


class BufferNumbers:
    """The buffers of one function. Numbers that are assigned here are negative; the planner's begin at 0."""

    def __init__(self) -> None:
        self._count = 0
        self._joined: dict[_Buffer, _Buffer] = {}

    def fresh(self) -> int:
        """Returns a new buffer number."""
        self._count += 1
        return -self._count

    def join(self, views: Iterable[StridedView]) -> None:
        """Makes the buffers of views slots of one buffer."""
        buffers = sorted({self._representative((view.base.memory, view.base.owner)) for view in views
                          if view.base.owner is not None})
        for buffer in buffers[:-1]:
            self._joined[buffer] = buffers[-1]

    def renumbered(self, record: OpRecord) -> OpRecord:
        """Returns a record whose accesses have one number for all slots of a buffer."""
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
