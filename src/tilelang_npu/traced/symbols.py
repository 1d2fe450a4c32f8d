"""Symbolic dimensions: integers that are only known when the kernel is called, and expressions of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NoReturn, SupportsIndex, Union

from tilelang_npu.errors import TileError
from tilelang_npu.ops import DType
from tilelang_npu.traced.active_trace import HostScalar, Scalar, Trace, TracedValue, active
from tilelang_npu.traced.author import refuse_python_value, user_location

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "//": lambda a, b: a // b,
    "%": lambda a, b: a % b, "min": min, "max": max,
}
_BINDING = {"+": 1, "-": 1, "*": 2, "//": 2, "%": 2}

Dimension = Union[int, "Sym"]
"""The type of a size: a number, or an expression of symbolic dimensions, which is evaluated when the kernel is called."""
Number = Union[int, float, "Sym", Scalar]
"""The type of a scalar in a kernel's source: a Python number, a size, or a traced scalar."""


def _operators(name: str) -> tuple[Callable[[Sym, Dimension], Dimension], Callable[[Sym, Dimension], Dimension]]:
    """The method of a binary operator, and the method with its operands swapped."""
    return lambda self, other: _combine(name, self, other), lambda self, other: _combine(name, other, self)


class Sym(HostScalar):
    """A symbolic dimension, or an expression of symbolic dimensions; immutable.

    ``T.symbolic("M")`` returns a dimension. The operators ``+``, ``-``, ``*``, ``//``, ``%`` and ``min``/``max`` with integers
    or other dimensions return expressions. Two objects with the same structure are equal: all dimensions of the same name are
    equal.

    Attributes:
        operator: ``"symbol"`` for a dimension; for an expression its operator: ``+``, ``-``, ``*``, ``//``, ``%``, ``min``,
            ``max``.
        operands: the two operands of an expression; empty for a dimension.
        key: the structure as a hashable tuple.
        dtype: the element type of a dimension in the kernel's source (in the IR, sizes are ``index``).
    """

    __slots__ = ("_name", "dtype", "key", "operands", "operator")
    __array_ufunc__ = None  # NumPy's integers leave the operation to these operators

    def __init__(self, name: str, dtype: str = "int32") -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise TileError(f"T.symbolic takes an identifier as its name, not {name!r}", code="T151",
                            location=user_location(),
                            help="letters, digits and underscores, as in T.symbolic('M')")
        self._set("symbol", name, (), dtype)

    def _set(self, operator: str, name: str, operands: tuple[Dimension, ...], dtype: str) -> None:
        self.operator: str = operator
        self._name = name
        self.operands: tuple[Dimension, ...] = operands
        self.dtype = dtype
        parts = (part.key if isinstance(part, Sym) else part for part in operands)
        self.key: tuple[Hashable, ...] = (operator, *parts) if operands else (operator, name)

    @classmethod
    def _make(cls, operator: str, left: Dimension, right: Dimension) -> Dimension:
        if isinstance(left, int) and isinstance(right, int):
            return _OPERATIONS[operator](left, right)
        if isinstance(right, int) and right == {"+": 0, "-": 0, "*": 1, "//": 1}.get(operator):
            return left
        if isinstance(left, int) and left == {"+": 0, "*": 1}.get(operator):
            return right
        if operator == "*" and 0 in [part for part in (left, right) if isinstance(part, int)]:
            return 0
        if operator in "+-" and isinstance(right, int) and isinstance(left, Sym) and left.operator == "+":
            start, step = left.operands
            if isinstance(step, int):
                return cls._make("+", start, step + right if operator == "+" else step - right)
        made = cls.__new__(cls)
        made._set(operator, "", (left, right), "int32")
        return made

    @property
    def name(self) -> str:
        """The name of a dimension, or the text of an expression."""
        return str(self)

    def symbols(self) -> tuple[str, ...]:
        """Returns the names of the dimensions in the expression, without repetition, from left to right."""
        if self.operator == "symbol":
            return (self._name,)
        found: dict[str, None] = {}
        for part in self.operands:
            if isinstance(part, Sym):
                found.update(dict.fromkeys(part.symbols()))
        return tuple(found)

    def evaluate(self, env: Mapping[str, int]) -> int:
        """Returns the value of the expression.

        Args:
            env: the value of each dimension, by name.

        Raises:
            KeyError: a dimension has no value; the message names the dimension.
        """
        if self.operator == "symbol":
            name = self._name
            if name not in env:
                msg = f"no value for the symbolic dimension {name!r}"
                raise KeyError(msg)
            return int(env[name])
        left, right = (part.evaluate(env) if isinstance(part, Sym) else part for part in self.operands)
        return _OPERATIONS[self.operator](left, right)

    __add__, __radd__ = _operators("+")
    __sub__, __rsub__ = _operators("-")
    __mul__, __rmul__ = _operators("*")
    __floordiv__, __rfloordiv__ = _operators("//")
    __mod__, __rmod__ = _operators("%")

    def __neg__(self) -> Dimension:
        return _combine("-", 0, self)

    def __truediv__(self, other: Number) -> Scalar:
        return self._trace().binary("truediv", self, other)

    def __rtruediv__(self, other: Number) -> Scalar:
        return self._trace().binary("truediv", other, self)

    def __lt__(self, other: Number) -> Scalar:
        return self._trace().compare("lt", self, other)

    def __le__(self, other: Number) -> Scalar:
        return self._trace().compare("le", self, other)

    def __gt__(self, other: Number) -> Scalar:
        return self._trace().compare("gt", self, other)

    def __ge__(self, other: Number) -> Scalar:
        return self._trace().compare("ge", self, other)

    def __eq__(self, other: object) -> Any:  # Python's is a truth value
        if isinstance(other, Sym) and self.key == other.key:
            return True
        if active() is not None and isinstance(other, (int, Sym)):
            return self._trace().compare("eq", self, other)
        return False if isinstance(other, (int, Sym)) else NotImplemented

    def __ne__(self, other: object) -> Any:  # as above
        if isinstance(other, Sym) and self.key == other.key:
            return False
        if active() is not None and isinstance(other, (int, Sym)):
            return self._trace().compare("ne", self, other)
        return True if isinstance(other, (int, Sym)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)  # not cached: hashes of text differ in the process that reads a pickle

    def _trace(self) -> Trace:
        """The running trace; on the host, where a dimension has no value, T144 is raised."""
        current = active()
        if current is None:
            self._refuse("value")
        return current

    def _refuse(self, wanted: str) -> NoReturn:
        refuse_python_value(f"the symbolic dimension {self}", wanted,
                                    "only a call of the kernel knows it; test it inside the kernel's body")

    def __bool__(self) -> bool:
        self._refuse("truth value")

    def __index__(self) -> int:
        self._refuse("integer")

    def __int__(self) -> int:
        self._refuse("integer")

    def __float__(self) -> float:
        self._refuse("number")

    def astype(self, dtype: object) -> Scalar:
        """Returns the dimension as a traced scalar of another element type.

        Raises:
            TileError: T144, no kernel is being traced.
        """
        return self._trace().cast(self, DType(dtype))

    def __str__(self) -> str:
        if self.operator == "symbol":
            return self._name
        left, right = self.operands
        if self.operator in ("min", "max"):
            return f"{self.operator}({left}, {right})"
        return f"{_wrapped(left, self.operator, False)} {self.operator} {_wrapped(right, self.operator, True)}"

    __repr__ = __str__


def _wrapped(part: Dimension, operator: str, right: bool) -> str:
    inner = part.operator if isinstance(part, Sym) else ""
    binding = _BINDING.get(inner, 3)
    outer = _BINDING[operator]
    return f"({part})" if binding < outer or (right and binding == outer) else str(part)


def _combine(operator: str, left: object, right: object) -> Dimension:
    a, b = _dimension(left), _dimension(right)
    return NotImplemented if a is None or b is None else Sym._make(operator, a, b)


def _dimension(value: object) -> Dimension | None:
    """The value as a size; None where it is not one. NumPy's integers are sizes."""
    if isinstance(value, (int, Sym)):
        return None if isinstance(value, bool) else value
    if isinstance(value, TracedValue) or not isinstance(value, SupportsIndex):
        return None
    return int(value.__index__())


def smaller(left: Dimension, right: Dimension) -> Dimension:
    """Returns the smaller of two sizes: a number if both are known, otherwise an expression."""
    return Sym._make("min", left, right)


def larger(left: Dimension, right: Dimension) -> Dimension:
    """Returns the larger of two sizes: a number if both are known, otherwise an expression."""
    return Sym._make("max", left, right)


def symbolic(name: str, dtype: str = "int32") -> Sym:
    """Return a symbolic dimension: an integer that each call determines from the shapes of its tensors.

    Dimensions with one name are one dimension.

    Example: ``T.symbolic("n")``
    """
    return Sym(name, dtype)


def dynamic(name: str, dtype: str = "int32") -> Any:  # a Sym or a tuple: type checkers would not unpack the union
    """Return one symbolic dimension for each name; names are separated by commas or spaces.

    One name gives a dimension, several a tuple.

    Example: ``T.dynamic("m, n")``
    """
    made = tuple(Sym(each, dtype) for each in name.replace(",", " ").split())
    return made[0] if len(made) == 1 else made


def polynomial(size: Dimension) -> dict[tuple[Hashable, ...], int]:
    """Returns a size as a sum of products: for each product of dimensions, as a sorted tuple of their keys, its factor.

    An expression with another operator than ``+``, ``-`` and ``*`` counts as a dimension. Two sizes with the same polynomial
    are equal for all values of the dimensions.
    """
    if isinstance(size, int):
        return {(): size} if size else {}
    if size.operator not in ("+", "-", "*"):
        return {(size.key,): 1}
    left, right = (polynomial(part) for part in size.operands)
    found: dict[tuple[Hashable, ...], int] = {}
    if size.operator == "*":
        terms = [(tuple(sorted((*a, *b), key=repr)), x * y) for a, x in left.items() for b, y in right.items()]
    else:
        terms = [*left.items(), *((key, -value if size.operator == "-" else value) for key, value in right.items())]
    for key, value in terms:
        found[key] = found.get(key, 0) + value
    return {key: value for key, value in found.items() if value}
