"""The running trace, its interface for modules that need no IR, and the operators of its scalars.

A kernel file that is only imported loads this module, and not the IR framework.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from types import FunctionType
from typing import Any, Literal, NoReturn, Protocol, TypeAlias, TypeVar

from tilelang_npu.errors import TileError
from tilelang_npu.ops import DType, dtype
from tilelang_npu.traced.author import refuse_python_value, user_location

T = TypeVar("T", bound="Trace")
Dialect: TypeAlias = Literal["npuir", "ascendc"]
"""The dialect of TileLang that a kernel's source follows."""

BINARY: dict[str, Callable[[Any, Any], Any]] = {  # Python's own, of numbers and of sizes
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "lshift": operator.lshift, "rshift": operator.rshift,
}


class TracedValue:
    """The base of objects that exist only while a kernel is traced: scalars, buffers, slices, elements."""

    __slots__ = ()

    def describe(self) -> str:
        """The object, for a message."""
        return str(self)


class HostScalar:
    """The base of numbers that a call of the kernel knows: symbolic dimensions, and expressions of them."""

    __slots__ = ()


def _operators(name: str) -> tuple[Callable[[Scalar, object], Scalar], Callable[[Scalar, object], Scalar]]:
    """The method of a binary operator, and the method with its operands swapped."""
    return lambda self, other: _binary(name, self, other), lambda self, other: _binary(name, other, self)


def _comparison(name: str) -> Callable[[Scalar, object], Scalar]:
    return lambda self, other: _compare(name, self, other)


class Scalar(TracedValue):
    """An object with a scalar value in the trace; each of Python's operators on it emits an operation."""

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

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("sub")
    __mul__, __rmul__ = _operators("mul")
    __truediv__, __rtruediv__ = _operators("truediv")
    __floordiv__, __rfloordiv__ = _operators("floordiv")
    __mod__, __rmod__ = _operators("mod")
    __pow__, __rpow__ = _operators("pow")
    __and__, __rand__ = _operators("and")
    __or__, __ror__ = _operators("or")
    __xor__, __rxor__ = _operators("xor")
    __lshift__, __rlshift__ = _operators("lshift")
    __rshift__, __rrshift__ = _operators("rshift")
    __lt__, __le__ = _comparison("lt"), _comparison("le")
    __gt__, __ge__ = _comparison("gt"), _comparison("ge")

    def __eq__(self, other: object) -> Any:  # Python's is a truth value
        return _compare("eq", self, other)

    def __ne__(self, other: object) -> Any:  # as above
        return _compare("ne", self, other)

    def __hash__(self) -> int:
        return id(self)


class Inlined(Protocol):
    """A macro, as the module that inlines it sees it.

    Attributes:
        function: the decorated function.
        hygienic: whether its free names are resolved where it is defined; otherwise the names at the call come first.
    """

    function: FunctionType
    hygienic: bool


class Trace(ABC):
    """The interface of a trace for modules that do not need its IR.

    Operands are scalars, symbolic dimensions and numbers of the host; others are refused with T141.

    Attributes:
        dialect: ``npuir`` or ``ascendc``.
    """

    dialect: Dialect

    @classmethod
    def running(cls: type[T], what: str) -> T:
        """The running trace.

        Raises:
            TileError: T160, ``what`` was called outside of a kernel.
        """
        found = _ACTIVE.get()
        if found is None:
            raise TileError(f"{what} is only usable inside a @T.prim_func", code="T160", location=user_location(),
                            help="move it into the kernel's body, below `with T.Kernel(...)`")
        assert isinstance(found, cls)
        return found

    @abstractmethod
    def cast(self, value: object, kind: DType) -> Scalar:
        """A scalar converted to another element type; a plain number becomes a typed scalar."""

    @abstractmethod
    def binary(self, name: str, left: object, right: object) -> Scalar:
        """``left name right`` of two scalars, in their common type."""

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
        """The bits of a scalar read as another type of the same width."""

    @abstractmethod
    def jump(self, what: str, *, leaves: bool) -> None:
        """Ends this iteration of the innermost loop; with ``leaves`` the loop too."""

    @abstractmethod
    def inline(self, macro: Inlined, arguments: Sequence[object], keywords: Mapping[str, object]) -> object:
        """Walks the statements of a macro with its parameters bound, and returns its result."""


_ACTIVE: ContextVar[Trace | None] = ContextVar("tilelang_npu_trace", default=None)


def active() -> Trace | None:
    """The running trace, or None on the host."""
    return _ACTIVE.get()


def enter(trace: Trace) -> Token[Trace | None]:
    """Makes ``trace`` the running one; :func:`leave` takes the token."""
    return _ACTIVE.set(trace)


def leave(token: Token[Trace | None]) -> None:
    """Ends the running trace."""
    _ACTIVE.reset(token)


def _running() -> Trace:
    return Trace.running("a traced value")


def _are_scalars(*operands: object) -> bool:
    return all(isinstance(part, (TracedValue, HostScalar, int, float)) or hasattr(part, "item") for part in operands)


def _binary(name: str, left: object, right: object) -> Scalar:
    return _running().binary(name, left, right) if _are_scalars(left, right) else NotImplemented


def _compare(name: str, left: object, right: object) -> Scalar:
    return _running().compare(name, left, right) if _are_scalars(left, right) else NotImplemented
