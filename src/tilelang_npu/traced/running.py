"""The running trace, as far as values and the language ask for it before there is any IR, and the operators of its scalars.

This module is light on purpose: a kernel file that is only imported needs no IR framework.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from types import FunctionType
from typing import Any, NoReturn, Protocol, TypeVar

from tilelang_npu.errors import TileError
from tilelang_npu.ops import DType, dtype
from tilelang_npu.traced.author import refuse_python_value, user_location

T = TypeVar("T", bound="Trace")

BINARY: dict[str, Callable[[Any, Any], Any]] = {  # Python's own, of numbers and of sizes
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "lshift": operator.lshift, "rshift": operator.rshift,
}


class TracedValue:
    """Marks what exists only while a kernel is traced: scalars, buffers, regions, element references."""

    __slots__ = ()

    def describe(self) -> str:
        """Text for a message."""
        return str(self)


class HostScalar:
    """Marks a number that a call of the kernel knows: a symbolic dimension, or an expression of them."""

    __slots__ = ()


class Scalar(TracedValue):
    """What has a scalar value in the trace; each of Python's operators on it emits an operation."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's scalars leave the operation to these operators

    def __bool__(self) -> bool:
        self._refuse("truth value", "Python cannot branch on it here: use `if` in the kernel's own source or in a @T.macro, "
                     "or T.if_then_else")

    def __index__(self) -> int:
        self._refuse("integer", "a size or a range must be known when the kernel is compiled")

    def __int__(self) -> int:
        self._refuse("integer", "use T.cast(x, 'int32')")

    def __float__(self) -> float:
        self._refuse("number", "use T.cast(x, 'float32')")

    def __iter__(self) -> NoReturn:
        self._refuse("elements", "it is one scalar")

    def __len__(self) -> int:
        self._refuse("length", "it is one scalar")

    def _refuse(self, wanted: str, remedy: str) -> NoReturn:
        refuse_python_value(f"a traced value ({self})", wanted, remedy)

    def astype(self, element: object) -> Scalar:
        """The value as another element type."""
        return _running().cast(self, dtype(element))

    def __neg__(self) -> Scalar:
        return _running().negate(self)

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Scalar:
        return _running().math("abs", self)

    def __invert__(self) -> Scalar:
        return _running().invert(self)

    def __add__(self, other: object) -> Scalar:
        return _binary("add", self, other)

    def __radd__(self, other: object) -> Scalar:
        return _binary("add", other, self)

    def __sub__(self, other: object) -> Scalar:
        return _binary("sub", self, other)

    def __rsub__(self, other: object) -> Scalar:
        return _binary("sub", other, self)

    def __mul__(self, other: object) -> Scalar:
        return _binary("mul", self, other)

    def __rmul__(self, other: object) -> Scalar:
        return _binary("mul", other, self)

    def __truediv__(self, other: object) -> Scalar:
        return _binary("truediv", self, other)

    def __rtruediv__(self, other: object) -> Scalar:
        return _binary("truediv", other, self)

    def __floordiv__(self, other: object) -> Scalar:
        return _binary("floordiv", self, other)

    def __rfloordiv__(self, other: object) -> Scalar:
        return _binary("floordiv", other, self)

    def __mod__(self, other: object) -> Scalar:
        return _binary("mod", self, other)

    def __rmod__(self, other: object) -> Scalar:
        return _binary("mod", other, self)

    def __pow__(self, other: object) -> Scalar:
        return _binary("pow", self, other)

    def __rpow__(self, other: object) -> Scalar:
        return _binary("pow", other, self)

    def __and__(self, other: object) -> Scalar:
        return _binary("and", self, other)

    def __rand__(self, other: object) -> Scalar:
        return _binary("and", other, self)

    def __or__(self, other: object) -> Scalar:
        return _binary("or", self, other)

    def __ror__(self, other: object) -> Scalar:
        return _binary("or", other, self)

    def __xor__(self, other: object) -> Scalar:
        return _binary("xor", self, other)

    def __rxor__(self, other: object) -> Scalar:
        return _binary("xor", other, self)

    def __lshift__(self, other: object) -> Scalar:
        return _binary("lshift", self, other)

    def __rlshift__(self, other: object) -> Scalar:
        return _binary("lshift", other, self)

    def __rshift__(self, other: object) -> Scalar:
        return _binary("rshift", self, other)

    def __rrshift__(self, other: object) -> Scalar:
        return _binary("rshift", other, self)

    def __lt__(self, other: object) -> Scalar:
        return _compare("lt", self, other)

    def __le__(self, other: object) -> Scalar:
        return _compare("le", self, other)

    def __gt__(self, other: object) -> Scalar:
        return _compare("gt", self, other)

    def __ge__(self, other: object) -> Scalar:
        return _compare("ge", self, other)

    def __eq__(self, other: object) -> Any:  # Python's is a truth value
        return _compare("eq", self, other)

    def __ne__(self, other: object) -> Any:  # as above
        return _compare("ne", self, other)

    def __hash__(self) -> int:
        return id(self)


class Inlined(Protocol):
    """A macro, as far as one needs it who inlines it.

    Attributes:
        function: the decorated function.
        hygienic: whether free names are those of the place of definition; otherwise those of the call come first.
    """

    function: FunctionType
    hygienic: bool


class Trace(ABC):
    """A trace, as those see it that do not need its IR. Operands are scalars, symbolic dimensions and numbers of the host;
    others are refused with T141.

    Attributes:
        dialect: ``npuir`` or ``ascendc``.
    """

    dialect: str

    @classmethod
    def running(cls: type[T], what: str) -> T:
        """The running trace.

        Raises:
            TileError: T160, ``what`` was used on the host.
        """
        found = _ACTIVE.get()
        if found is None:
            raise TileError(f"{what} is only usable inside a @T.prim_func", code="T160", location=user_location(),
                            help="move it into the kernel's body, below `with T.Kernel(...)`")
        assert isinstance(found, cls)
        return found

    @abstractmethod
    def cast(self, value: object, kind: DType) -> Scalar:
        """A scalar as another element type, typed also where it is a plain number."""

    @abstractmethod
    def binary(self, name: str, left: object, right: object) -> Scalar:
        """``left name right`` of two scalars, where they meet."""

    @abstractmethod
    def compare(self, name: str, left: object, right: object) -> Scalar:
        """A comparison (``lt le gt ge eq ne``) as a truth value."""

    @abstractmethod
    def negate(self, value: object) -> Scalar:
        """``-value``."""

    @abstractmethod
    def invert(self, value: object) -> Scalar:
        """``~value``."""

    @abstractmethod
    def truth(self, value: object) -> Scalar:
        """The scalar as a truth value: itself, or whether it differs from zero."""

    @abstractmethod
    def logical_not(self, value: object) -> Scalar:
        """``not value``."""

    @abstractmethod
    def select(self, condition: object, chosen: object, other: object) -> Scalar:
        """``chosen`` where the condition holds, else ``other``; both are evaluated."""

    @abstractmethod
    def math(self, name: str, value: object) -> Scalar:
        """A function of one scalar."""

    @abstractmethod
    def math_of_two(self, name: str, left: object, right: object) -> Scalar:
        """A function of two scalars."""

    @abstractmethod
    def count_bits(self, name: str, value: object) -> Scalar:
        """``popcount`` or ``clz`` of an integer."""

    @abstractmethod
    def bits_as(self, value: object, kind: DType) -> Scalar:
        """A scalar's bits read as another type of the same width."""

    @abstractmethod
    def jump(self, what: str, *, leaves: bool) -> None:
        """End this iteration of the innermost loop; with ``leaves`` the loop too."""

    @abstractmethod
    def inline(self, macro: Inlined, arguments: Sequence[object], keywords: Mapping[str, object]) -> object:
        """Walk the statements of a macro with its parameters bound; what it returns."""


_ACTIVE: ContextVar[Trace | None] = ContextVar("tilelang_npu_trace", default=None)


def active() -> Trace | None:
    """The running trace, or None on the host."""
    return _ACTIVE.get()


def enter(trace: Trace) -> Token[Trace | None]:
    """Make ``trace`` the running one; give the token to :func:`leave`."""
    return _ACTIVE.set(trace)


def leave(token: Token[Trace | None]) -> None:
    """End the running trace."""
    _ACTIVE.reset(token)


def _running() -> Trace:
    return Trace.running("a traced value")


def _are_scalars(*operands: object) -> bool:
    return all(isinstance(part, (TracedValue, HostScalar, int, float)) or hasattr(part, "item") for part in operands)


def _binary(name: str, left: object, right: object) -> Scalar:
    return _running().binary(name, left, right) if _are_scalars(left, right) else NotImplemented


def _compare(name: str, left: object, right: object) -> Scalar:
    return _running().compare(name, left, right) if _are_scalars(left, right) else NotImplemented
