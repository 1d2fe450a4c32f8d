"""Scalars of an interpreted kernel, which are NumPy values with an element type, and the arithmetic on them.

Loop variables, block ids and sizes have the type ``index`` (64 bits). A Python number takes the type of the other operand; an
integer that does not fit that type becomes ``int32`` or ``int64``, and a Python float with an integer operand becomes
``float32``. The common type of two scalars is the wider type; of an integer and a float it is the float's type, of ``float16``
and ``bfloat16`` ``float32``, and of ``index`` and another integer ``index``. ``/`` is a float division, ``//`` rounds toward
minus infinity, ``%`` has the sign of the divisor, and integers wrap on overflow.

The value of a scalar is a NumPy scalar. Inside a ``T.Parallel`` it can also be an array with one axis for each axis of the
loop, and so one element for each point (iteration). Using such an array as a truth value or as an index raises
:class:`NeedsPoints`, and the loop is then executed point by point.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial, reduce
from typing import NamedTuple, TypeGuard

import ml_dtypes
import numpy as np

from tilelang_npu.interpreter.running_core import current
from tilelang_npu.target.dtypes import DType, dtype

Array = np.ndarray
Values = np.ndarray | np.generic
"""An array, or the NumPy scalar in place of an array without axes; of any element type."""
Number = int | float | np.number
"""A plain number (see :func:`is_literal`)."""


class NeedsPoints(Exception):
    """Raised if the body of a ``T.Parallel`` cannot be executed on arrays, and must be executed point by point."""


class IndexType:
    """The type ``index`` of loop variables, block ids and sizes: 64-bit integers."""

    numpy: np.dtype = np.dtype(np.int64)
    bits, is_float, is_integer, is_signed, is_bool = 64, False, True, True, False

    def __str__(self) -> str:
        return "index"


INDEX = IndexType()
BOOL, INT32, INT64, FLOAT32 = dtype("bool"), dtype("int32"), dtype("int64"), dtype("float32")
Kind = DType | IndexType


def limits(kind: Kind) -> tuple[int, int]:
    """Returns the smallest and the largest value of an integer type."""
    high = (1 << (kind.bits - kind.is_signed)) - 1
    return (-high - 1 if kind.is_signed else 0), high


# --- conversions ---------------------------------------------------------------------------------------------------------

RANDOM: ContextVar[np.random.Generator | None] = ContextVar("tilelang_npu_random_rounding", default=None)
"""A random generator with which each inexact float result is rounded up or down at random; None to round to nearest even.

The differences between several runs with random rounding show how large a difference can be that is only due to rounding
(discrete stochastic arithmetic, Vignes 1993).
"""


def finish(wide: Values, kind: Kind) -> Array:
    """Returns float64 results converted to ``kind``: rounded to nearest even, or at random if ``RANDOM`` is set."""
    wide = np.asarray(wide)
    made = wide.astype(kind.numpy)
    random = RANDOM.get()
    if random is None or kind.bits >= 64:
        return made
    back = made.astype(np.float64)
    inexact = np.isfinite(back) & (back != wide) & (random.random(wide.shape) < 0.5)
    return np.where(inexact, np.nextafter(made, np.where(wide > back, np.inf, -np.inf).astype(kind.numpy)), made)


def to_float(values: Values, kind: Kind) -> Array:
    """Returns ``values`` converted to a float type and rounded to nearest even; a conversion to bfloat16 goes through float32,
    as on the Vector core."""
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


def to_integer(values: Values, kind: Kind, mode: str = "trunc") -> Array:
    """Returns ``values`` converted to an integer type.

    Floats are rounded by ``mode`` (see :func:`integral`) and saturate; NaN becomes 0. Integers wrap.
    """
    values = np.asarray(values)
    if values.dtype.kind in "iub":
        return values.astype(kind.numpy)
    wide = np.nan_to_num(integral(values.astype(np.float64), mode), nan=0.0, posinf=np.inf, neginf=-np.inf)
    low, high = limits(kind)
    inside = (wide >= float(low)) & (wide < float(high) + 1.0)  # float(2**63 - 1) is 2**63
    whole = np.where(inside, wide, 0.0).astype(np.uint64 if high > 2**63 else np.int64)
    return np.where(inside, whole, np.where(wide < 0, low, high).astype(whole.dtype)).astype(kind.numpy)


def integral(values: Values, mode: str) -> Array:
    """Returns floats rounded to integral values.

    Args:
        values: the floats.
        mode: ``rint`` (to nearest, ties to even), ``round`` (to nearest, ties away from zero), ``floor``, ``ceil``, ``trunc``,
            or ``odd`` (to the neighbouring odd integer, for values that are not integral).
    """
    if mode in ("rint", "floor", "ceil", "trunc"):
        made: Array = getattr(np, mode)(values)
        return made
    down = np.trunc(values)
    rest = np.abs(np.subtract(values, down))
    away = rest >= 0.5 if mode == "round" else (rest > 0) & (np.fmod(down, 2) == 0)
    rounded: Array = np.add(down, np.copysign(away.astype(values.dtype), values))
    return rounded


def convert(values: Values, kind: Kind, mode: str = "trunc") -> Array:
    """Returns values converted to ``kind``; floats that become integers are rounded by ``mode`` (see :func:`integral`)."""
    if kind.is_bool:
        return np.not_equal(values, 0)
    return to_float(values, kind) if kind.is_float else to_integer(values, kind, mode)


_SATURATING = {(np.dtype(np.int32), np.dtype(np.int16)), (np.dtype(np.int64), np.dtype(np.int32))}
"""The conversions between integer types (from, to) that are a single instruction of the Vector core, which saturates; all other
conversions between integers wrap."""


def cast_elements(values: Values, kind: DType, mode: str = "rint") -> Array:
    """Returns the elements of a tile converted as on the Vector core: rounded by ``mode``; floats saturate to integers."""
    values = np.asarray(values)
    whole = values.dtype.kind in "iub" or str(values.dtype) == "int4"
    if values.dtype == kind.numpy:
        return values
    if kind.is_bool:
        return np.not_equal(values, 0)
    if not kind.is_float:
        if not whole:
            return to_integer(values, kind, mode)
        return (np.clip(values, *limits(kind)) if (values.dtype, kind.numpy) in _SATURATING else values).astype(kind.numpy)
    if whole and values.dtype.itemsize >= 4 and kind.bits < 32:
        values = values.astype(np.float32)  # the conversion to 16 bits goes by way of float32, rounded to nearest
    return to_float(values, kind) if mode == "rint" else _directed(values, kind, mode)


def _directed(values: Array, kind: DType, mode: str) -> Array:
    """Returns values converted to a float type, with a rounding mode other than to nearest even."""
    # float64 does not hold all 64-bit integers, Python's integers do; their nearest floats are integers, too
    number = np.frompyfunc(int, 1, 1) if values.dtype in (np.int64, np.uint64) else np.float64
    exact, nearest = number(values), values.astype(np.float32).astype(kind.numpy)
    back = number(nearest.astype(np.float64))
    down = np.where(back > exact, np.nextafter(nearest, kind.numpy.type(-np.inf)), nearest)
    up = np.where(back < exact, np.nextafter(nearest, kind.numpy.type(np.inf)), nearest)
    if mode == "odd":
        chosen = np.where(down.view(f"u{kind.numpy.itemsize}") & 1 == 1, down, up)
    elif mode == "round":
        half = number(up.astype(np.float64)) - exact == exact - number(down.astype(np.float64))
        chosen = np.where(half, np.where(exact >= 0, up, down), nearest)
    else:
        chosen = {"floor": down, "ceil": up}.get(mode, np.where(exact >= 0, down, up))
    return np.where(np.isfinite(values.astype(np.float64)) & (back != exact), chosen, nearest).astype(kind.numpy)


# --- scalars -------------------------------------------------------------------------------------------------------------


class Operators(ABC):
    """The base class of objects with a scalar value in a kernel; it defines Python's operators on them."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy leaves the operation to these operators

    @abstractmethod
    def load(self) -> TypedScalar:
        """Returns the value; elements and variables are read."""

    def __neg__(self) -> Number | TypedScalar:
        return negate(self)

    def __pos__(self) -> TypedScalar:
        return scalar(self)

    def __abs__(self) -> Number | TypedScalar:
        return absolute(self)

    def __invert__(self) -> Number | TypedScalar:
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

    def astype(self, kind: object) -> TypedScalar:
        """Returns the value converted to another element type, as by ``T.cast``."""
        return cast(self, dtype(kind))


class Span(NamedTuple):
    """The integers ``first``, ``first + step``, ... along an axis of a ``T.Parallel``, ``size`` in number."""

    axis: int
    first: int
    step: int
    size: int


class TypedScalar(Operators):
    """A scalar of a kernel: a number with an element type.

    Attributes:
        value: a NumPy scalar, or an array with one value for each point of the enclosing ``T.Parallel``.
        kind: the type.
        span: the values as a progression, if ``value`` is an array that only changes along one axis of the loop, in equal
            steps; otherwise None.
        origin: the element from which an assignment ``name = buf[i]`` read the scalar. An operation that expects an element
            (``T.copy``) uses this element if it is given the name.
    """

    __slots__ = ("kind", "origin", "span", "value")

    def __init__(self, value: Values, kind: Kind, span: Span | None = None) -> None:
        self.value, self.kind, self.span = value, kind, span
        self.origin: Operators | None = None

    def load(self) -> TypedScalar:
        """Returns the scalar itself."""
        return self

    def single(self) -> float:
        """Returns the value as a Python number.

        Raises:
            NeedsPoints: the value is an array with one value per point.
        """
        if np.ndim(self.value):
            raise NeedsPoints
        found: float = self.value.item()
        return found

    @property
    def dtype(self) -> Kind:
        """The element type, or ``index``."""
        return self.kind

    def __repr__(self) -> str:
        return str(self.value)

    def __format__(self, layout: str) -> str:
        return format(self.value.item() if np.ndim(self.value) == 0 else self.value, layout)


class IndexInt(int):
    """A Python integer with the type ``index``: a loop variable, a block id or a size."""

    __slots__ = ()


def _enter(name: str, compute: Callable[[str, object, object], object], *, both: bool) -> None:
    """Adds a binary operator to the classes of scalars and indices; with ``both`` also the reflected one (``__radd__``)."""
    def operate(self: object, other: object) -> object:
        return compute(name, self, other) if is_scalar(other) else NotImplemented

    def reflected(self: object, other: object) -> object:
        return compute(name, other, self) if is_scalar(other) else NotImplemented

    for owner in (Operators, IndexInt):
        setattr(owner, f"__{name}__", operate)
        if both:
            setattr(owner, f"__r{name}__", reflected)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift", "pow"):
    _enter(_name, lambda name, left, right: binary(name, left, right) if name != "pow" else power(left, right), both=True)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _enter(_name, lambda name, left, right: compare(name, left, right), both=False)
for _name in ("neg", "invert", "abs"):
    setattr(IndexInt, f"__{_name}__", getattr(Operators, f"__{_name}__"))
IndexInt.__hash__ = int.__hash__  # type: ignore[method-assign]  # an equal hash for an equal number


def scalar(value: object) -> TypedScalar:
    """Returns a value as a scalar of the kernel.

    A scalar is returned unchanged, an element is read, and a Python number gets its default type.

    Raises:
        TypeError: the value is not a scalar.
    """
    if isinstance(value, Operators):
        return value.load()
    if isinstance(value, IndexInt):
        return TypedScalar(np.int64(value), INDEX)
    if isinstance(value, (bool, np.bool_)):
        return TypedScalar(np.bool_(value), BOOL)
    if isinstance(value, (int, np.integer)):
        kind = INT32 if -2**31 <= value < 2**31 else INT64
        return TypedScalar(kind.numpy.type(value), kind)
    if isinstance(value, (float, np.floating)):
        return TypedScalar(np.float32(value), FLOAT32)
    msg = f"{value!r} is not a scalar"
    raise TypeError(msg)


def is_literal(value: object) -> TypeGuard[Number]:
    """Whether the value is a plain Python or NumPy number, which takes the type of the other operand."""
    return isinstance(value, (bool, int, float, np.generic)) and not isinstance(value, IndexInt)


def is_scalar(value: object) -> bool:
    """Whether the value is a number, a scalar of the kernel, or an element of a buffer."""
    return isinstance(value, (Operators, bool, int, float, np.generic))


def promote(left: Kind, right: Kind) -> Kind:
    """Returns the common type of two scalars of the given types (see the module's docstring)."""
    if left == right:
        return left
    if left.is_float != right.is_float:
        return left if left.is_float else right
    if left.is_float and left.bits == right.bits:
        return FLOAT32
    if not left.is_float and INDEX in (left, right):
        return INDEX
    if left.bits == right.bits:
        return left if left.is_signed else right
    return left if left.bits > right.bits else right


def adopted(literal: Number, kind: Kind) -> Kind:
    """Returns the common type of a Python number and an operand of type ``kind``."""
    if isinstance(literal, (float, np.floating)):
        return kind if kind.is_float else FLOAT32
    if isinstance(literal, (bool, np.bool_)) or kind.is_float or kind is INDEX:
        return kind
    for candidate in (INT32,) if kind.is_bool else (kind, INT32):
        low, high = limits(candidate)
        if low <= literal <= high:
            return candidate
    return INT64


def meet(left: object, right: object) -> tuple[Values, Values, Kind]:
    """Returns the values of both operands, converted to their common type, and that type."""
    if is_literal(left) and is_literal(right):
        left = scalar(left)
    if is_literal(left):
        b, a, kind = meet(right, left)
        return a, b, kind
    x = scalar(left)
    if is_literal(right):
        kind = adopted(right, x.kind)
        return convert(x.value, kind), literal(right, kind), kind
    y = scalar(right)
    kind = promote(x.kind, y.kind)
    return convert(x.value, kind), convert(y.value, kind), kind


def literal(number: Number, kind: Kind) -> Values:
    """Returns a Python number as a NumPy scalar of type ``kind``."""
    if kind.is_float:
        return to_float(np.float64(number), kind)[()]
    return np.bool_(number) if kind.is_bool else kind.numpy.type(int(number))


# --- arithmetic ----------------------------------------------------------------------------------------------------------


def quotient(a: Values, b: Values) -> Array:
    """Returns the quotients of integers, rounded toward zero; 0 where the divisor is 0."""
    down = np.floor_divide(a, b)
    fraction = np.not_equal(down * b, a) & (np.less(a, 0) != np.less(b, 0)) & np.not_equal(b, 0)
    made: Array = np.add(down, fraction).astype(a.dtype)
    return made


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shifted(a: Values, b: Values, *, left: bool) -> Array:
    """Returns ``a`` shifted by ``b`` bits.

    A shift by at least the width of the type, or by a negative number of bits, shifts out all bits.

    Args:
        a: the shifted integers.
        b: the numbers of bits.
        left: whether the shift is to the left; otherwise it is to the right.
    """
    inside = np.greater_equal(b, 0) & np.less(b, 8 * a.dtype.itemsize)
    amount = np.where(inside, b, 0).astype(a.dtype)
    out = np.where(np.less(a, 0), 0 if left else -1, 0).astype(a.dtype)
    return np.where(inside, np.left_shift(a, amount) if left else np.right_shift(a, amount), out).astype(a.dtype)


_SHARED = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
           "xor": operator.xor, "floordiv": operator.floordiv, "mod": operator.mod}
"""The binary operators for which Python integers and NumPy integers use the same function, by name."""
_PYTHON: dict[str, Callable[..., Number]] = {
    **_SHARED, "truediv": operator.truediv, "lshift": operator.lshift, "rshift": operator.rshift, "min": min, "max": max,
    "truncdiv": _truncated, "truncmod": lambda a, b: a - _truncated(a, b) * b}
_INTEGERS: dict[str, Callable[[Values, Values], Values]] = {
    **_SHARED, "truncdiv": quotient, "truncmod": lambda a, b: np.subtract(a, quotient(a, b) * b), "min": np.minimum,
    "max": np.maximum, "lshift": lambda a, b: shifted(a, b, left=True), "rshift": lambda a, b: shifted(a, b, left=False)}
_FLOATS: dict[str, Callable[[Values, Values], Values]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "min": np.minimum, "max": np.maximum}


def binary(name: str, left: object, right: object) -> Number | TypedScalar:
    """Returns the result of a binary operation on two scalars, in their common type.

    ``name`` is ``add``, ``sub``, ``mul``, ``truediv``, ``floordiv``, ``mod``, ``and``, ``or``, ``xor``, ``lshift``, ``rshift``,
    ``min``, ``max``, ``truncdiv`` or ``truncmod`` (the last two round toward zero).
    """
    if isinstance(left, int) and isinstance(right, int) and name != "truediv":
        found = _PYTHON[name](int(left), int(right))
        return IndexInt(found) if isinstance(left, IndexInt) or isinstance(right, IndexInt) else found
    if is_literal(left) and is_literal(right):
        number: Number = _PYTHON[name](left, right)
        return number
    a, b, kind = meet(left, right)
    if kind.is_bool and name not in ("and", "or", "xor"):
        a, b, kind = a.astype(np.int32), b.astype(np.int32), INT32
    if name == "truediv" and not kind.is_float:
        a, b, kind = to_float(a, FLOAT32), to_float(b, FLOAT32), FLOAT32
    if kind.is_float:
        return TypedScalar(_on_floats(name, a, b, kind), kind)
    return TypedScalar(_INTEGERS[name](a, b), kind, _span(name, left, right))


def _on_floats(name: str, a: Values, b: Values, kind: Kind) -> Values:
    if name in ("floordiv", "truncdiv"):
        return (np.floor if name == "floordiv" else np.trunc)(_on_floats("truediv", a, b, kind))
    if name in ("mod", "truncmod"):
        whole = _on_floats("floordiv" if name == "mod" else "truncdiv", a, b, kind)
        return _on_floats("sub", a, _on_floats("mul", whole, b, kind), kind)
    if name not in _FLOATS:
        msg = f"operator {name} does not take {kind}"
        raise TypeError(msg)
    if RANDOM.get() is not None:
        return finish(_FLOATS[name](a.astype(np.float64), b.astype(np.float64)), kind)
    return _FLOATS[name](a, b)


def _span(name: str, left: object, right: object) -> Span | None:
    """Returns the ``TypedScalar.span`` of a sum, difference or product of an operand with a span and an integer; else None."""
    for side, other, reflected in ((left, right, False), (right, left, True)):
        if isinstance(side, TypedScalar) and side.span is not None and isinstance(other, int):
            axis, first, step, count = side.span
            if name == "add" or (name == "sub" and not reflected):
                return Span(axis, first + (int(other) if name == "add" else -int(other)), step, count)
            if name == "mul" and other > 0:
                return Span(axis, first * int(other), step * int(other), count)
    return None


def compare(name: str, left: object, right: object) -> bool | TypedScalar:
    """Returns the ``bool`` scalar of a comparison; ``name`` is ``lt``, ``le``, ``gt``, ``ge``, ``eq`` or ``ne``."""
    if is_literal(left) and is_literal(right):
        found: bool = getattr(operator, name)(left, right)
        return found
    if isinstance(left, int) and isinstance(right, int):
        return TypedScalar(np.bool_(getattr(operator, name)(int(left), int(right))), BOOL)
    a, b, _ = meet(left, right)
    return TypedScalar(getattr(operator, name)(a, b), BOOL)


def truth(value: object) -> TypedScalar:
    """Returns a ``bool`` scalar that states whether a scalar differs from zero."""
    found = scalar(value)
    return found if found.kind.is_bool else TypedScalar(np.asarray(found.value != 0, np.bool_)[()], BOOL)


def select(condition: object, chosen: object, other: object) -> TypedScalar:
    """Returns ``chosen`` if the condition is true, otherwise ``other``, converted to their common type."""
    a, b, kind = meet(chosen, other)
    chosen_values: Array = np.where(truth(condition).value, a, b)
    return TypedScalar(chosen_values[()].astype(kind.numpy), kind)


def _unary(plain: Callable[..., Number], compute: Callable[[Values], Values], value: object) -> Number | TypedScalar:
    if is_literal(value):
        return plain(value)
    found = scalar(value)
    return TypedScalar(compute(found.value), found.kind)


invert = partial(_unary, operator.invert, np.invert)
"""Returns ``~value``, the bitwise complement of an integer, or the negation of a ``bool``."""
absolute = partial(_unary, abs, np.abs)
"""Returns the absolute value; the smallest integer of a signed type is returned unchanged."""


def negate(value: object) -> Number | TypedScalar:
    """Returns ``-value``; for an integer, this is ``0 - value``."""
    if isinstance(value, IndexInt):
        return IndexInt(-int(value))
    found = value if is_literal(value) else scalar(value)
    is_whole = isinstance(found, TypedScalar) and not found.kind.is_float
    return binary("sub", 0, found) if is_whole else _unary(operator.neg, np.negative, found)


def power(left: object, right: object) -> Number | TypedScalar:
    """Returns ``left ** right``.

    An integral exponent from 0 to 8 is computed as a product, and 0.5 or -0.5 as a (reciprocal) square root. For other
    exponents, the power is computed in a float type.
    """
    if is_literal(right) and is_literal(left):
        number: Number = operator.pow(left, right)
        return number
    if is_literal(right) and right == int(right) and 0 <= right <= 8:
        if right == 0:
            return binary("add", binary("mul", left, 0), 1)
        base = left if is_literal(left) or isinstance(left, IndexInt) else scalar(left)
        return reduce(partial(binary, "mul"), [base] * int(right))
    if is_literal(right) and abs(right) == 0.5:
        return function((lambda a: np.sqrt(a)) if right > 0 else (lambda a: 1 / np.sqrt(a)), left)
    return function(np.power, left, right)


def rounded(compute: Callable[..., Values], kind: Kind, *values: Values) -> Values:
    """Returns the results of a function of floats, computed in float32 (float64 for float64) and rounded once to ``kind``."""
    wide = np.float64 if kind.bits == 64 or RANDOM.get() is not None else np.float32
    return finish(np.asarray(compute(*[np.asarray(value).astype(wide) for value in values])), kind)[()]


def function(compute: Callable[..., Values], *values: object) -> float | TypedScalar:
    """Returns the result of a function of one or two scalars; integers are converted to float32 first."""
    numbers = [value for value in values if is_literal(value)]
    if len(numbers) == len(values):
        found: float = compute(*map(np.float64, numbers)).item()
        return found
    given = [scalar(values[0])] if len(values) == 1 else values  # an element is read once
    *operands, kind = meet(given[0], given[-1])
    if not kind.is_float:
        operands, kind = [to_float(value, FLOAT32) for value in operands], FLOAT32
    return TypedScalar(rounded(compute, kind, *operands[:len(values)]), kind)


def mode_to_integer() -> str:
    """Returns the rounding mode for conversions of floats to integers at the current position.

    The mode is ``rint`` (to nearest even) in a ``T.Parallel`` of the npuir dialect, whose vector casts round so, otherwise
    ``trunc``.
    """
    core = current()
    return "rint" if core.in_parallel and core.dialect == "npuir" else "trunc"


def cast(value: object, kind: DType) -> TypedScalar:
    """Returns a scalar converted to another type.

    Floats become integers by the rounding mode of :func:`mode_to_integer`, with saturation. Integers wrap. Floats are rounded
    to nearest even to a narrower float type.
    """
    if not is_literal(value):
        return TypedScalar(convert(scalar(value).value, kind, mode_to_integer())[()], kind)
    if kind.is_float or kind.is_bool:
        return TypedScalar(literal(value, kind), kind)
    whole = np.asarray(value, np.float64) if isinstance(value, float) else np.asarray(int(value))
    return TypedScalar(to_integer(whole, kind)[()], kind)


def erf(values: Values) -> Array:
    """Returns the error function of each element, computed in float64."""
    return np.vectorize(math.erf, otypes=[np.float64])(values) if np.size(values) else np.asarray(values, np.float64)
