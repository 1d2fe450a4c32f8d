"""The active trace, its interface, and Python's operators on the trace's scalars.

This module does not import the IR framework, so that importing a file with kernels does not load it.
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
from tilelang_npu.source_dialects import TracedDialect
from tilelang_npu.traced.author import refuse_python_value, user_location

T = TypeVar("T", bound="Trace")
"""The dialect of TileLang that a kernel's source follows."""

BINARY: dict[str, Callable[[Any, Any], Any]] = {  # Python's own, of numbers and of sizes
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "lshift": operator.lshift, "rshift": operator.rshift,
}


class TracedValue:
    """The base class of objects that exist only while a kernel is traced: scalars, buffers, slices and elements."""

    __slots__ = ()

    def describe(self) -> str:
        """Returns a description of the object for error messages."""
        return str(self)

    def repair_as_scalar(self) -> str:
        """Returns what to write in place of the object where a scalar is needed, for error messages."""
        return "loop over its elements with T.Parallel, or use a tile operation such as T.tile.add or T.vadd"


class HostScalar:
    """The base class of numbers that are known when the kernel is called: symbolic dimensions, and expressions of them."""

    __slots__ = ()


def _operators(name: str) -> tuple[Callable[[Scalar, object], Scalar], Callable[[Scalar, object], Scalar]]:
    """The method of a binary operator, and the method with its operands swapped."""
    return lambda self, other: _binary(name, self, other), lambda self, other: _binary(name, other, self)


def _comparison(name: str) -> Callable[[Scalar, object], Scalar]:
    return lambda self, other: _compare(name, self, other)


class Scalar(TracedValue):
    """A scalar value of the traced kernel; applying a Python operator to it emits an operation."""

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
        self._refuse("elements", "a scalar cannot be iterated over; loop with T.serial")

    def __len__(self) -> int:
        self._refuse("length", "only buffers have one; take len() of a buffer")

    def _refuse(self, wanted: str, remedy: str) -> NoReturn:
        refuse_python_value(f"a traced value ({self})", wanted, remedy)

    def astype(self, element: object) -> Scalar:
        """Returns the scalar converted to another element type, as by ``T.cast``."""
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
    """A macro that can be inlined into a trace.

    Attributes:
        function: the decorated Python function.
        hygienic: whether free names of the function are resolved where the function is defined. Otherwise the names that are
            visible at the call take precedence.
    """

    function: FunctionType
    hygienic: bool


class Trace(ABC):
    """The interface of a trace, for modules that do not import the IR framework.

    Operands of the methods are traced scalars, symbolic dimensions or Python numbers; the methods raise T141 for other
    operands.

    Attributes:
        dialect: the dialect of the kernel's source, ``npuir`` or ``ascendc``.
    """

    dialect: TracedDialect

    @classmethod
    def running(cls: type[T], what: str) -> T:
        """Returns the active trace.

        Args:
            what: the name of the language construct that needs the trace, for the error message.

        Raises:
            TileError: T160, there is no active trace, because ``what`` is used outside of a kernel.
        """
        found = _ACTIVE.get()
        if found is None:
            raise TileError(f"{what} is only usable inside a @T.prim_func", code="T160", location=user_location(),
                            help="move it into the kernel's body, below `with T.Kernel(...)`")
        assert isinstance(found, cls)
        return found

    @abstractmethod
    def cast(self, value: object, kind: DType) -> Scalar:
        """Returns a scalar or a Python number converted to the element type ``kind``."""

    @abstractmethod
    def binary(self, name: str, left: object, right: object) -> Scalar:
        """Returns the result of a binary operator on two scalars, in their common type.

        Args:
            name: a key of ``BINARY``, such as ``add``, or ``min``, ``max``, ``truncdiv``, ``truncmod``.
            left: the left operand.
            right: the right operand.
        """

    @abstractmethod
    def compare(self, name: str, left: object, right: object) -> Scalar:
        """Returns the ``bool`` scalar of a comparison; ``name`` is ``lt``, ``le``, ``gt``, ``ge``, ``eq`` or ``ne``."""

    @abstractmethod
    def negate(self, value: object) -> Scalar:
        """Returns ``-value``."""

    @abstractmethod
    def invert(self, value: object) -> Scalar:
        """Returns ``~value``, the bitwise complement."""

    @abstractmethod
    def truth(self, value: object) -> Scalar:
        """Returns the scalar as ``bool``: a ``bool`` scalar itself, otherwise whether the scalar differs from zero."""

    @abstractmethod
    def logical_not(self, value: object) -> Scalar:
        """Returns ``not value`` as a ``bool`` scalar."""

    @abstractmethod
    def select(self, condition: object, chosen: object, other: object) -> Scalar:
        """Returns ``chosen`` if the condition is true, otherwise ``other``; both operands are computed in any case."""

    @abstractmethod
    def math(self, name: str, value: object) -> Scalar:
        """Returns the result of a mathematical function of one scalar; ``name`` is for example ``exp`` or ``sqrt``."""

    @abstractmethod
    def math_of_two(self, name: str, left: object, right: object) -> Scalar:
        """Returns the result of a mathematical function of two scalars; ``name`` is ``atan2`` or ``copysign``."""

    @abstractmethod
    def count_bits(self, name: str, value: object) -> Scalar:
        """Returns the number of one bits (``popcount``) or of leading zero bits (``clz``) of an integer, as ``int32``."""

    @abstractmethod
    def bits_as(self, value: object, kind: DType) -> Scalar:
        """Returns the bits of a scalar interpreted as another element type, which must have the same width."""

    @abstractmethod
    def jump(self, what: str, *, leaves: bool) -> None:
        """Emits a jump to the end of the current iteration of the innermost loop.

        Args:
            what: the statement's name, for error messages.
            leaves: whether the jump ends the loop too (``break``).
        """

    @abstractmethod
    def inline(self, macro: Inlined, arguments: Sequence[object], keywords: Mapping[str, object]) -> object:
        """Emits the statements of a macro at the current position, and returns the macro's result.

        Args:
            macro: the macro.
            arguments: the values of the positional arguments.
            keywords: the values of the keyword arguments by name.
        """


_ACTIVE: ContextVar[Trace | None] = ContextVar("tilelang_npu_trace", default=None)


def active() -> Trace | None:
    """Returns the active trace, or None if no kernel is being traced."""
    return _ACTIVE.get()


def enter(trace: Trace) -> Token[Trace | None]:
    """Makes ``trace`` the active trace and returns a token, which must be passed to :func:`leave`."""
    return _ACTIVE.set(trace)


def leave(token: Token[Trace | None]) -> None:
    """Makes the trace active again that was active before the :func:`enter` that returned ``token``."""
    _ACTIVE.reset(token)


def _running() -> Trace:
    return Trace.running("a traced value")


def _are_scalars(*operands: object) -> bool:
    return all(isinstance(part, (TracedValue, HostScalar, int, float)) or hasattr(part, "item") for part in operands)


def _binary(name: str, left: object, right: object) -> Scalar:
    return _running().binary(name, left, right) if _are_scalars(left, right) else NotImplemented


def _compare(name: str, left: object, right: object) -> Scalar:
    return _running().compare(name, left, right) if _are_scalars(left, right) else NotImplemented
