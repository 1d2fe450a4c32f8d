"""Scalars of a trace: the value of ``cid // n_num`` while the kernel is traced."""

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
    """Emits the constant of a scalar into the IR."""

    def constant(self, value: int | float | bool, kind: Kind) -> SSAValue:
        """The constant in the current block."""


class Place(Scalar, ABC):
    """A scalar that is read from memory where its value is needed."""

    __slots__ = ()

    @abstractmethod
    def load(self) -> Expr:
        """Reads it at the current statement."""


class Expr(Scalar):
    """A scalar of the trace.

    Attributes:
        kind: its type; ``INDEX`` for loop variables, block ids and sizes.
        constant: its value where the front end knows it. Such a scalar has no operation until one is needed.
        form: its linear form, for integers.
        bounds: its proven bounds, for integers.
        symbol: the same value as a host expression of symbolic dimensions and integer parameters, where there is one.
        origin: the element that an assignment read it from: an operand that takes an element takes the name as that element.
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
        """The element type in the kernel's source, where loop variables and sizes are ``int32``."""
        return self.kind if isinstance(self.kind, DType) else INT32

    @property
    def non_negative(self) -> bool:
        """Whether the value is proven not to be negative."""
        return self.bounds.low >= 0

    def ssa(self, constants: Constants) -> SSAValue:
        """The value in the IR; a constant is emitted into the current block if the block does not have it."""
        if self._value is None:
            assert self.constant is not None
            return constants.constant(self.constant, self.kind)
        return self._value

    def suggest_name(self, name: str) -> None:
        """Gives the value a name in the IR, unless it has one."""
        if self._value is not None and self._value.name_hint is None and name.strip("_"):
            self._value.name_hint = escape_name(name)

    def __str__(self) -> str:
        if self.constant is not None:
            return f"{self.constant} : {self.kind}"
        name = author_name(self._value) if self._value is not None else None
        return f"{name} : {self.kind}" if name else str(self.kind)

    __repr__ = __str__


def clip(kind: Kind, bounds: Interval) -> Interval:
    """The bounds of a result that wraps where it leaves its type; sizes without an upper bound are assumed not to wrap."""
    if isinstance(kind, DType):
        return bounds.fitted(bounds_of(kind))
    return bounds.fitted(bounds_of(INT64)) if bounds.closed else bounds
