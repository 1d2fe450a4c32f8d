"""The vector registers of a trace: values of builtin vector types, which exist inside of a vector function (``T.SimdVF``)."""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import VectorType, i1
from xdsl.ir import SSAValue

from tilelang_npu.errors import TileError
from tilelang_npu.ops import DType
from tilelang_npu.traced.active_trace import TracedValue
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import extent
from tilelang_npu.traced.ir_types import scalar_type
from tilelang_npu.traced.kinds import BOOL, INDEX


def register_type(element: DType, lanes: int) -> VectorType:
    """Returns the type of a register; integers are signless, as ``arith`` requires, and a mask has elements of i1."""
    return VectorType(i1 if element.is_bool else scalar_type(element), [lanes])


class Register(TracedValue):
    """The value of a vector register, or of a mask, whose elements are ``bool``.

    Attributes:
        value: the value in the IR, of a vector type.
        element: the element type.
        lanes: the number of elements.
    """

    __slots__ = ("element", "lanes", "value")

    def __init__(self, value: SSAValue, element: DType, lanes: int) -> None:
        self.value, self.element, self.lanes = value, element, lanes

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.element

    @property
    def is_mask(self) -> bool:
        """Whether the value is a mask."""
        return self.element.is_bool

    def describe(self) -> str:
        """Returns a description of the value for error messages."""
        return f"a mask of {self.lanes} lanes" if self.is_mask else f"a register of {self.lanes} {self.element}"

    __str__ = __repr__ = describe


class RegisterVariable(TracedValue):
    """Registers of one type that the vector function assigns more than once: a ``T.vmi.alloc_var`` or ``T.vmi.alloc_local``.

    Attributes:
        storage: the memref of vectors, in which the function keeps the registers.
        element, lanes: the type of each register.
        shape: the number of registers along each axis; empty for a single register.
    """

    def __init__(self, storage: SSAValue, element: DType, lanes: int, shape: tuple[int, ...] = ()) -> None:
        self.storage, self.element, self.lanes, self.shape = storage, element, lanes, shape

    def describe(self) -> str:
        """Returns a description of the value for error messages."""
        return f"{'registers' if self.shape else 'a register'} of {self.lanes} {self.element}"

    __str__ = __repr__ = describe

    def __getitem__(self, items: object) -> RegisterPlace:
        given = items if isinstance(items, tuple) else (items,)
        if len(given) != len(self.shape):
            raise TileError(f"{self.describe()} have {len(self.shape)} axes, {len(given)} indices are given", code="T111",
                            help="give one index per axis")
        for axis, (item, size) in enumerate(zip(given, self.shape, strict=True)):
            if isinstance(item, int) and not 0 <= item < size:
                raise TileError(f"index {item} is outside axis {axis} of {self.describe()}: valid are 0 to {size - 1}",
                                code="T130", help="check the size of the allocation")
        return RegisterPlace(self, given)

    @property
    def place(self) -> RegisterPlace:
        """The single register of a ``T.vmi.alloc_var``."""
        return RegisterPlace(self, ())


class RegisterPlace(TracedValue):
    """A register of a :class:`RegisterVariable`; it is read where it is an operand."""

    def __init__(self, variable: RegisterVariable, items: tuple[object, ...]) -> None:
        self.variable, self.items = variable, items

    def describe(self) -> str:
        """Returns a description of the register for error messages."""
        return self.variable.describe()

    __str__ = __repr__ = describe

    def _indices(self, builder: Builder) -> list[SSAValue]:
        if not self.variable.shape:
            return [builder.constant(0, INDEX)]
        return [builder.index(extent(builder, item)) for item in self.items]

    def load(self) -> Register:
        """Emits a read of the register at the current position."""
        builder = Builder.running("a register")
        made = builder.discardable(memref.LoadOp.get(self.variable.storage, self._indices(builder)))
        return Register(made.results[0], self.variable.element, self.variable.lanes)

    def store(self, value: object) -> None:
        """Emits an assignment to the register at the current position.

        Raises:
            TileError: T110, the value is not a register of the same type.
        """
        builder, variable = Builder.running("a register"), self.variable
        found = value.load() if isinstance(value, RegisterPlace) else value
        if not isinstance(found, Register) or (found.element, found.lanes) != (variable.element, variable.lanes):
            given = found.describe() if isinstance(found, TracedValue) else repr(found)
            raise TileError(f"{variable.describe()} cannot hold {given}", code="T110",
                            help="assign a register with the same element type and number of lanes")
        builder.emit(memref.StoreOp.get(found.value, variable.storage, self._indices(builder)))


def masks(lanes: int) -> VectorType:
    """Returns the type of a mask."""
    return register_type(BOOL, lanes)
