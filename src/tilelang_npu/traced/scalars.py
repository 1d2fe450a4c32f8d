"""Scalars of a trace: what ``cid // n_num`` is while the kernel is traced."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from xdsl.ir import SSAValue

from tilelang_npu.dialects.text.names import author_name, escape_name
from tilelang_npu.linear import ANY, Interval, Linear
from tilelang_npu.ops import DType
from tilelang_npu.traced.forms import bounds_of
from tilelang_npu.traced.kinds import INT32, INT64, Kind
from tilelang_npu.traced.running import Scalar
from tilelang_npu.traced.symbols import Sym


class Constants(Protocol):
    """What has a scalar's constant in the IR."""

    def constant(self, value: int | float | bool, kind: Kind) -> SSAValue:
        """The constant in the current block."""


class Place(Scalar, ABC):
    """Where a scalar is read: its value is the one that it has there now."""

    __slots__ = ()

    @abstractmethod
    def load(self) -> Expr:
        """Read it here."""


class Expr(Scalar):
    """A scalar of the trace.

    Attributes:
        kind: its type; ``INDEX`` for loop variables, block ids and sizes.
        constant: its value where the front end knows it. Such a scalar has no operation before one needs it.
        form: its linear form, for integers.
        bounds: between which it is proven to be, for integers.
        symbol: the same value as a host expression of symbolic dimensions and integer parameters, where it is one.
        origin: the element it was loaded from by an assignment: an operand that names a place still means that place.
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
        """Element type as the kernel's source sees it; loop variables and sizes are ``int32`` there."""
        return self.kind if isinstance(self.kind, DType) else INT32

    @property
    def non_negative(self) -> bool:
        """Whether the value is proven to be zero or more."""
        return self.bounds.low >= 0

    def ssa(self, constants: Constants) -> SSAValue:
        """The value in the IR; a constant is emitted into the current block unless it is there."""
        if self._value is None:
            assert self.constant is not None
            return constants.constant(self.constant, self.kind)
        return self._value

    def suggest_name(self, name: str) -> None:
        """Show the name in the IR, unless the value has one."""
        if self._value is not None and self._value.name_hint is None and name.strip("_"):
            self._value.name_hint = escape_name(name)

    def __str__(self) -> str:
        if self.constant is not None:
            return f"{self.constant} : {self.kind}"
        name = author_name(self._value) if self._value is not None else None
        return f"{name} : {self.kind}" if name else str(self.kind)

    __repr__ = __str__


def clip(kind: Kind, bounds: Interval) -> Interval:
    """The interval of a result that wraps where it leaves its type; sizes without an upper bound are taken not to."""
    if isinstance(kind, DType):
        return bounds.fitted(bounds_of(kind))
    return bounds.fitted(bounds_of(INT64)) if bounds.closed else bounds
