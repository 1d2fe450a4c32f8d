"""Scalars of an interpreted kernel: a NumPy value with an element type, and the arithmetic between two of them.

The rules of the language. Loop variables, block ids and sizes have the type ``index`` (64 bits). A Python number adopts the other
side's type; an integer that does not fit there makes ``int32`` or ``int64``, a Python float beside integers makes ``float32``.
Two types meet in the wider one, an integer and a float in the float, float16 and bfloat16 in float32, ``index`` and any integer in
``index``. ``/`` is a float division, ``//`` and ``%`` round toward minus infinity, integers wrap.

The value of a scalar is a NumPy scalar, or inside ``T.Parallel`` an array with one axis for each axis of the loop: one element for
each point ("lane"). An array has no truth value and no index; asking for one raises :class:`NeedsPoints`, and the loop is run
again point by point.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import ml_dtypes
import numpy as np

from tilelang_npu.target.dtypes import DType, dtype

Array = Any  # np.ndarray or NumPy scalar of any element type


class NeedsPoints(Exception):
    """The body of a ``T.Parallel`` does something that only works on single points."""


class IndexKind:
    """The type of loop variables, block ids and sizes: 64-bit integers."""

    numpy = np.dtype(np.int64)
    bits = 64
    is_float = False
    is_integer = True
    is_signed = True
    is_bool = False

    def __str__(self) -> str:
        return "index"


INDEX = IndexKind()
BOOL, INT32, INT64, FLOAT32 = dtype("bool"), dtype("int32"), dtype("int64"), dtype("float32")
Kind = DType | IndexKind


def limits(kind: Kind) -> tuple[int, int]:
    """The least and the greatest integer of an integer type."""
    info: Any = np.iinfo(kind.numpy) if kind.numpy.kind in "iu" else ml_dtypes.iinfo(kind.numpy)  # type: ignore[no-untyped-call]  # ml_dtypes'
    return int(info.min), int(info.max)


# --- conversions ---------------------------------------------------------------------------------------------------------

RANDOM: ContextVar[np.random.Generator | None] = ContextVar("tilelang_npu_random_rounding", default=None)
"""Where this is set, each inexact float result is rounded up or down at random: the spread of several runs then shows how much
rounding explains (discrete stochastic arithmetic, Vignes 1993)."""


def finish(wide: Array, kind: Kind) -> Array:
    """Float64 results as elements of ``kind``: rounded to nearest even, or at random up or down."""
    wide = np.asarray(wide)
    made = wide.astype(kind.numpy)
    random = RANDOM.get()
    if random is None or kind.bits >= 64:
        return made
    back = made.astype(np.float64)
    with np.errstate(invalid="ignore"):
        inexact = np.isfinite(back) & (back != wide) & (random.random(wide.shape) < 0.5)
        other = np.nextafter(made, np.where(wide > back, np.inf, -np.inf).astype(kind.numpy))
    return np.where(inexact, other, made)


def to_float(values: Array, kind: Kind) -> Array:
    """``values`` in a float type, rounded once to nearest even; bfloat16 by way of float32, as the Vector core converts."""
    values = np.asarray(values)
    if values.dtype == kind.numpy:
        return values
    if values.dtype.kind in "iub" and kind.bits < 32:
        values = values.astype(np.float64)
    if values.dtype == np.float64 and kind.numpy == ml_dtypes.bfloat16:
        values = values.astype(np.float32)
    if RANDOM.get() is not None and values.dtype.itemsize > kind.numpy.itemsize:
        return finish(values.astype(np.float64), kind)
    return values.astype(kind.numpy)


def to_integer(values: Array, kind: Kind, mode: str = "trunc") -> Array:
    """Floats as integers: rounded by ``mode``, saturating; NaN becomes 0. Integers wrap."""
    values = np.asarray(values)
    if values.dtype.kind in "iub":
        return values.astype(kind.numpy)
    wide = integral(values.astype(np.float64), mode)
    low, high = limits(kind)
    wide = np.where(np.isnan(wide), 0.0, wide)
    inside = (wide >= float(low)) & (wide < float(high) + 1.0)  # float(2**63 - 1) is 2**63
    whole = np.where(inside, wide, 0.0).astype(np.uint64 if high > 2**63 else np.int64)
    return np.where(inside, whole, np.where(wide < 0, low, high).astype(whole.dtype)).astype(kind.numpy)


def integral(values: Array, mode: str) -> Array:
    """Floats without a fraction: ``rint`` (ties to even), ``round`` (ties away from zero), ``floor``, ``ceil``, ``trunc``, or
    ``odd`` (to the odd neighbour where there is a fraction)."""
    if mode in ("rint", "floor", "ceil", "trunc"):
        return getattr(np, mode)(values)
    down = np.trunc(values)
    rest = np.abs(values - down)
    away = rest >= 0.5 if mode == "round" else (rest > 0) & (np.fmod(down, 2) == 0)
    return down + np.copysign(away.astype(values.dtype), values)


def convert(values: Array, kind: Kind, mode: str = "trunc") -> Array:
    """``values`` as elements of ``kind``; ``mode`` rounds floats that become integers."""
    values = np.asarray(values)
    if kind.is_bool:
        return values != 0
    if kind.is_float:
        return to_float(values, kind)
    return to_integer(values, kind, mode)


# --- scalars -------------------------------------------------------------------------------------------------------------


class Operators:
    """Python's operators for what has a scalar value in a kernel."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy leaves the operation to these operators

    def __add__(self, other: Any) -> Any:
        return binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return binary("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return binary("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return binary("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return binary("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return binary("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return binary("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return binary("truediv", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return binary("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return binary("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return binary("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return binary("mod", other, self)

    def __pow__(self, other: Any) -> Any:
        return power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return power(other, self)

    def __and__(self, other: Any) -> Any:
        return binary("and", self, other)

    def __rand__(self, other: Any) -> Any:
        return binary("and", other, self)

    def __or__(self, other: Any) -> Any:
        return binary("or", self, other)

    def __ror__(self, other: Any) -> Any:
        return binary("or", other, self)

    def __xor__(self, other: Any) -> Any:
        return binary("xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return binary("xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return binary("lshift", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return binary("lshift", other, self)

    def __rshift__(self, other: Any) -> Any:
        return binary("rshift", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return binary("rshift", other, self)

    def __lt__(self, other: Any) -> Any:
        return compare("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return compare("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return compare("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return compare("ge", self, other)

    def __eq__(self, other: Any) -> Any:
        return compare("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return compare("ne", self, other)

    def __neg__(self) -> Any:
        return negate(self)

    def __pos__(self) -> Any:
        return scalar(self)

    def __abs__(self) -> Any:
        return absolute(self)

    def __invert__(self) -> Any:
        return invert(self)

    def __hash__(self) -> int:
        return hash(scalar(self).value.item())

    def __bool__(self) -> bool:
        return bool(scalar(self).single())

    def __int__(self) -> int:
        return int(scalar(self).single())

    def __float__(self) -> float:
        return float(scalar(self).single())

    def __index__(self) -> int:
        found = scalar(self)
        if not found.kind.is_integer:
            msg = f"an index or a size is an integer, not {found.kind}"
            raise TypeError(msg)
        return int(found.single())

    def astype(self, kind: object) -> Any:
        """The value as another element type."""
        return cast(self, dtype(kind))


class Scalar(Operators):
    """A number with an element type.

    Attributes:
        value: a NumPy scalar, or an array over the points of the enclosing ``T.Parallel``.
        kind: its type.
        span: of an array that runs along one axis of the loop in equal steps: (axis, first value, step, count); else None.
        origin: the element that it was read from, where an assignment gave it a name: ``T.copy`` takes the name as that place.
    """

    __slots__ = ("kind", "origin", "span", "value")

    def __init__(self, value: Array, kind: Kind, span: tuple[int, int, int, int] | None = None) -> None:
        self.value, self.kind, self.span = value, kind, span
        self.origin: Any = None

    def single(self) -> Any:
        """The NumPy scalar.

        Raises:
            NeedsPoints: the value is an array over points.
        """
        if isinstance(self.value, np.ndarray) and self.value.ndim:
            raise NeedsPoints
        return self.value

    @property
    def dtype(self) -> Kind:
        """Its type."""
        return self.kind

    def __repr__(self) -> str:
        return str(self.value)

    def __format__(self, layout: str) -> str:
        return format(self.value.item() if np.ndim(self.value) == 0 else self.value, layout)


class Index(int):
    """A Python integer of the type ``index``: a loop variable, a block id, a size."""

    __slots__ = ()


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    for _prefix in ("", "r"):
        _method = f"__{_prefix}{_name}__"
        setattr(Index, _method, getattr(Operators, _method))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "invert", "abs"):
    setattr(Index, f"__{_name}__", getattr(Operators, f"__{_name}__"))
Index.__hash__ = int.__hash__  # type: ignore[method-assign]


def scalar(value: Any) -> Scalar:
    """The scalar that ``value`` stands for: itself, the element that it names, or a Python number as a literal.

    Raises:
        TypeError: it is no scalar.
    """
    if isinstance(value, Scalar):
        return value
    if isinstance(value, Index):
        return Scalar(np.int64(value), INDEX)
    read = getattr(value, "load", None)
    if read is not None:
        return read()
    if isinstance(value, (bool, np.bool_)):
        return Scalar(np.bool_(value), BOOL)
    if isinstance(value, (int, np.integer)):
        kind = INT32 if -2**31 <= value < 2**31 else INT64
        return Scalar(kind.numpy.type(value), kind)
    if isinstance(value, (float, np.floating)):
        return Scalar(np.float32(value), FLOAT32)
    msg = f"{value!r} is not a scalar"
    raise TypeError(msg)


def is_literal(value: Any) -> bool:
    """Whether this is a number of Python's, which adopts the type of what it meets."""
    return isinstance(value, (bool, int, float, np.generic)) and not isinstance(value, Index)


def is_scalar(value: Any) -> bool:
    """Whether the value is a number, a scalar of the kernel, or an element that is read where a number is needed."""
    return isinstance(value, (Operators, bool, int, float, np.generic))


def promote(left: Kind, right: Kind) -> Kind:
    """The type in which two scalars meet."""
    if left is right or left == right:
        return left
    if left.is_float != right.is_float:
        return left if left.is_float else right
    if left.is_float:
        return FLOAT32 if left.bits == right.bits else max(left, right, key=lambda kind: kind.bits)
    if INDEX in (left, right):
        return INDEX
    if left.bits == right.bits:
        return left if left.is_signed else right
    return max(left, right, key=lambda kind: kind.bits)


def adopted(literal: Any, kind: Kind) -> Kind:
    """The type in which a Python number meets a scalar of type ``kind``."""
    if isinstance(literal, (float, np.floating)):
        return kind if kind.is_float else FLOAT32
    if isinstance(literal, (bool, np.bool_)) or kind.is_float or kind is INDEX:
        return kind
    if kind.is_bool:
        return INT32
    for candidate in (kind, INT32):
        low, high = limits(candidate)
        if low <= literal <= high:
            return candidate
    return INT64


def meet(left: Any, right: Any) -> tuple[Array, Array, Kind]:
    """The values of both sides in the type where they meet, and that type."""
    if is_literal(left) and is_literal(right):
        left = scalar(left)
    if is_literal(left):
        b = scalar(right)
        kind = adopted(left, b.kind)
        return _as(left, kind), convert(b.value, kind), kind
    a = scalar(left)
    if is_literal(right):
        kind = adopted(right, a.kind)
        return convert(a.value, kind), _as(right, kind), kind
    b = scalar(right)
    kind = promote(a.kind, b.kind)
    return convert(a.value, kind), convert(b.value, kind), kind


def _as(literal: Any, kind: Kind) -> Array:
    """A Python number as a NumPy scalar of a type."""
    if kind.is_float:
        return to_float(np.float64(literal), kind)[()]
    return np.bool_(literal) if kind.is_bool else kind.numpy.type(int(literal))


# --- arithmetic ----------------------------------------------------------------------------------------------------------

_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv, "mod": operator.mod,
    "floordiv": operator.floordiv, "and": operator.and_, "or": operator.or_, "xor": operator.xor, "lshift": operator.lshift,
    "rshift": operator.rshift, "min": min, "max": max,
    "truncdiv": lambda a, b: math.trunc(a / b) if isinstance(a, float) else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
}


def _shift(a: Array, b: Array, *, left: bool) -> Array:
    """Shifts by the width or more, or by a negative amount, move every bit out."""
    width = 8 * a.dtype.itemsize
    inside = (b >= 0) & (b < width)
    amount = np.where(inside, b, 0).astype(a.dtype)
    if left:
        return np.where(inside, np.left_shift(a, amount), 0).astype(a.dtype)
    return np.where(inside, np.right_shift(a, amount), np.where(a < 0, -1, 0).astype(a.dtype)).astype(a.dtype)


def _floored(a: Array, b: Array) -> Array:
    return np.floor_divide(a, b)


def _truncated(a: Array, b: Array) -> Array:
    quotient = np.floor_divide(a, b)
    return np.where((quotient * b != a) & ((a < 0) != (b < 0)) & (b != 0), quotient + 1, quotient).astype(a.dtype)


_INTEGERS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "min": np.minimum, "max": np.maximum, "floordiv": _floored, "mod": np.remainder, "truncdiv": _truncated,
    "truncmod": lambda a, b: a - _truncated(a, b) * b,
    "lshift": lambda a, b: _shift(a, b, left=True), "rshift": lambda a, b: _shift(a, b, left=False),
}
_FLOATS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "min": np.minimum, "max": np.maximum}


def binary(name: str, left: Any, right: Any) -> Any:
    """``left name right`` for ``+ - * / // % & | ^ << >>``, ``min``, ``max``, ``truncdiv`` and ``truncmod``."""
    if isinstance(left, (Index, int)) and isinstance(right, (Index, int)) and name in _PYTHON and name != "truediv":
        found = _PYTHON[name](int(left), int(right))
        return Index(found) if isinstance(left, Index) or isinstance(right, Index) else found
    if not (is_scalar(left) and is_scalar(right)):
        return NotImplemented
    if is_literal(left) and is_literal(right):
        return _PYTHON[name](left, right)
    a, b, kind = meet(left, right)
    if kind.is_bool and name not in ("and", "or", "xor"):
        a, b, kind = a.astype(np.int32), b.astype(np.int32), INT32
    if name == "truediv" and not kind.is_float:
        a, b, kind = to_float(a, FLOAT32), to_float(b, FLOAT32), FLOAT32
    if kind.is_float:
        return Scalar(_on_floats(name, a, b, kind), kind)
    if name not in _INTEGERS:
        msg = f"operator {name} does not take {kind}"
        raise TypeError(msg)
    return Scalar(_INTEGERS[name](a, b), kind, _span(name, left, right))


def _on_floats(name: str, a: Array, b: Array, kind: Kind) -> Array:
    if name in ("floordiv", "truncdiv"):
        quotient = _on_floats("truediv", a, b, kind)
        return np.floor(quotient) if name == "floordiv" else np.trunc(quotient)
    if name in ("mod", "truncmod"):
        whole = _on_floats("floordiv" if name == "mod" else "truncdiv", a, b, kind)
        return _on_floats("sub", a, _on_floats("mul", whole, b, kind), kind)
    if name not in _FLOATS:
        msg = f"operator {name} does not take {kind}"
        raise TypeError(msg)
    if RANDOM.get() is not None:
        return finish(_FLOATS[name](a.astype(np.float64), b.astype(np.float64)), kind)
    return _FLOATS[name](a, b)


def _span(name: str, left: Any, right: Any) -> tuple[int, int, int, int] | None:
    """The span of a sum, a difference or a product of a span and a number."""
    for side, other, turned in ((left, right, False), (right, left, True)):
        span = side.span if isinstance(side, Scalar) else None
        if span is None or not isinstance(other, int):
            continue
        axis, first, step, count = span
        if name == "add":
            return axis, first + int(other), step, count
        if name == "sub" and not turned:
            return axis, first - int(other), step, count
        if name == "mul" and other > 0:
            return axis, first * int(other), step * int(other), count
    return None


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne}


def compare(name: str, left: Any, right: Any) -> Any:
    """A comparison (``lt le gt ge eq ne``) as a truth value."""
    if not (is_scalar(left) and is_scalar(right)):
        return NotImplemented
    if is_literal(left) and is_literal(right):
        return _COMPARE[name](left, right)
    if isinstance(left, int) and isinstance(right, int):
        return Scalar(np.bool_(_COMPARE[name](int(left), int(right))), BOOL)
    a, b, _ = meet(left, right)
    return Scalar(_COMPARE[name](a, b), BOOL)


def truth(value: Any) -> Scalar:
    """Whether a scalar differs from zero."""
    found = scalar(value)
    return found if found.kind.is_bool else Scalar(np.asarray(found.value != 0)[()], BOOL)


def select(condition: Any, chosen: Any, other: Any) -> Scalar:
    """``chosen`` where the condition holds, else ``other``, in the type where both meet."""
    a, b, kind = meet(chosen, other)
    return Scalar(np.where(truth(condition).value, a, b)[()].astype(kind.numpy), kind)


def negate(value: Any) -> Any:
    """``-value``; integers as ``0 - value``."""
    if is_literal(value):
        return -value
    if isinstance(value, Index):
        return Index(-int(value))
    found = scalar(value)
    return Scalar(-found.value, found.kind) if found.kind.is_float else binary("sub", 0, found)


def invert(value: Any) -> Any:
    """The complement of an integer's bits, or of a truth value."""
    if is_literal(value):
        return ~value
    found = scalar(value)
    return Scalar(np.invert(found.value), found.kind)


def absolute(value: Any) -> Any:
    """The absolute value; that of the least integer is itself."""
    if is_literal(value):
        return abs(value)
    found = scalar(value)
    return Scalar(np.abs(found.value), found.kind)


def power(left: Any, right: Any) -> Any:
    """``left ** right``: whole exponents of 0 to 8 multiply, 0.5 and -0.5 are square roots, others are computed in floats."""
    if is_literal(left) and is_literal(right):
        return left**right
    if is_literal(right) and right == int(right) and 0 <= right <= 8:
        if right == 0:
            return binary("add", binary("mul", left, 0), 1)
        result = left if not is_literal(left) else scalar(left)
        for _ in range(int(right) - 1):
            result = binary("mul", result, left)
        return result
    if is_literal(right) and abs(right) == 0.5:
        return function("sqrt" if right > 0 else "rsqrt", left)
    a, b, kind = meet(left, right)
    if not kind.is_float:
        a, b, kind = to_float(a, FLOAT32), to_float(b, FLOAT32), FLOAT32
    return Scalar(rounded(np.power, kind, a, b), kind)


def rounded(compute: Callable[..., Array], kind: Kind, *values: Array) -> Array:
    """A function of floats: computed in float32 (float64 for float64), and rounded once to ``kind``."""
    wide = np.float64 if kind.bits == 64 or RANDOM.get() is not None else np.float32
    return finish(np.asarray(compute(*[np.asarray(value).astype(wide) for value in values])), kind)[()]


def erf(values: Array) -> Array:
    """The error function, element by element in float64."""
    return np.vectorize(math.erf, otypes=[np.float64])(values) if np.size(values) else np.asarray(values, np.float64)


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a), "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "erf": erf, "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
    "expm1": np.expm1, "reciprocal": lambda a: 1 / a,
}
"""Functions of one float, by the name of the language."""
_WHOLE = ("floor", "ceil", "round", "trunc")


def function(name: str, value: Any) -> Any:
    """A function of one scalar; integers become float32 first, but have no fraction to round."""
    if is_literal(value):
        value = float(value)
        return FUNCTIONS[name](np.float64(value)).item() if name not in _WHOLE else int(FUNCTIONS[name](np.float64(value)))
    found = scalar(value)
    if not found.kind.is_float:
        if name in _WHOLE:
            return value
        found = Scalar(to_float(found.value, FLOAT32), FLOAT32)
    return Scalar(rounded(FUNCTIONS[name], found.kind, found.value), found.kind)


def cast(value: Any, kind: DType) -> Scalar:
    """A scalar as another type: floats lose their fraction and saturate, integers wrap, narrower floats round to nearest even."""
    if is_literal(value):
        if kind.is_float or kind.is_bool:
            return Scalar(_as(value, kind), kind)
        return Scalar(to_integer(np.asarray(int(value) if math.isfinite(value) else value, object if isinstance(value, int) else None)
                                 .astype(np.float64 if isinstance(value, float) else np.int64), kind)[()], kind)
    return Scalar(convert(scalar(value).value, kind)[()], kind)
