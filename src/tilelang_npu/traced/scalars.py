"""The scalars of a trace, such as the object for ``cid // n_num`` while the kernel is traced."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from xdsl.ir import SSAValue

from tilelang_npu.dialects.text.names import author_name, escape_name
from tilelang_npu.linear import ANY, Interval, Linear
from tilelang_npu.ops import DType
from tilelang_npu.traced.active_trace import Scalar
from tilelang_npu.traced.kinds import INT32, INT64, Kind
from tilelang_npu.traced.linear_forms import bounds_of
from tilelang_npu.traced.symbols import Sym


class Constants(Protocol):
    """An object that can emit constants into the IR."""

    def constant(self, value: int | float | bool, kind: Kind) -> SSAValue:
        """Returns the IR value of a constant of type ``kind`` in the current block, which is emitted if necessary."""


class Place(Scalar, ABC):
    """A memory location that can be used as a scalar; a load is emitted wherever the value is needed."""

    __slots__ = ()

    @abstractmethod
    def load(self) -> Expr:
        """Emits a load at the current position and returns the loaded scalar."""


class Expr(Scalar):
    """A scalar of a trace.

    Attributes:
        kind: the type; ``INDEX`` for loop variables, block ids and sizes.
        constant: the value, if it is known at compile time; otherwise None. A constant operation is only emitted on demand.
        form: the linear form of an integer; None for floats.
        bounds: the interval that provably contains an integer.
        symbol: the value as an expression of symbolic dimensions and integer parameters, which the host can evaluate; None if
            there is none.
        origin: the element from which an assignment ``name = buf[i]`` read the scalar. An operation that expects an element
            (``T.copy``) uses this element if it is given the name.
    """

    __slots__ = ("_value", "bounds", "constant", "form", "kind", "origin", "symbol")

    def __init__(self, kind: Kind, value: SSAValue | None, *, constant: int | float | bool | None = None,
                 form: Linear[int] | None = None, bounds: Interval = ANY, symbol: int | Sym | None = None) -> None:
        self.kind = kind
        self._value = value
        self.constant = constant
        self.form = form
        self.bounds = bounds
        self.symbol = symbol
        self.origin: Place | None = None

    @property
    def dtype(self) -> DType:
        """The element type as the kernel's author sees it; ``int32`` for loop variables, block ids and sizes."""
        return self.kind if isinstance(self.kind, DType) else INT32

    @property
    def non_negative(self) -> bool:
        """Whether the integer is provably not negative."""
        return self.bounds.low >= 0

    def ssa(self, constants: Constants) -> SSAValue:
        """Returns the IR value of the scalar; ``constants`` emits a constant into the current block if necessary."""
        if self._value is None:
            assert self.constant is not None
            return constants.constant(self.constant, self.kind)
        return self._value

    def suggest_name(self, name: str) -> None:
        """Sets the name of the scalar's IR value, unless the value already has a name."""
        if self._value is not None and self._value.name_hint is None and name.strip("_"):
            self._value.name_hint = escape_name(name)

    def __str__(self) -> str:
        if self.constant is not None:
            return f"{self.constant} : {self.kind}"
        name = author_name(self._value) if self._value is not None else None
        return f"{name} : {self.kind}" if name else str(self.kind)

    __repr__ = __str__


def clip(kind: Kind, bounds: Interval) -> Interval:
    """Returns the bounds of a result after wrapping to its type.

    Bounds that exceed the range of the type become the range of the type. An ``index`` without a known upper bound is assumed
    not to wrap.
    """
    if isinstance(kind, DType):
        return bounds.fitted(bounds_of(kind))
    return bounds.fitted(bounds_of(INT64)) if bounds.closed else bounds
