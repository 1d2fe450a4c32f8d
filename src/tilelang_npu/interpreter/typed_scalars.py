"""Scalars of an interpreted kernel: a NumPy value with an element type, and the arithmetic between two of them.

Loop variables, block ids and sizes have the type ``index`` (64 bits). A Python number takes the type of the other operand; an
integer that does not fit that type becomes ``int32`` or ``int64``, a Python float with an integer operand becomes ``float32``.
Of two types the wider one is the common type; of an integer and a float the float; of float16 and bfloat16 float32; of
``index`` and another integer ``index``. ``/`` is a float division, ``//`` and ``%`` round toward minus infinity, integers wrap.

The value of a scalar is a NumPy scalar, or inside ``T.Parallel`` an array with one axis for each axis of the loop: one element
for each point. An array has no truth value and is not an index; asking for one raises :class:`NeedsPoints`, and the loop runs
point by point.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import ml_dtypes
import numpy as np

from tilelang_npu.interpreter.running_core import current
from tilelang_npu.target.dtypes import DType, dtype

Array = Any  # np.ndarray or NumPy scalar of any element type


class NeedsPoints(Exception):
    """The body of a ``T.Parallel`` does something that works on single points only."""


class IndexType:
    """The type of loop variables, block ids and sizes: 64-bit integers."""

    numpy: np.dtype[Any] = np.dtype(np.int64)
    bits, is_float, is_integer, is_signed, is_bool = 64, False, True, True, False

    def __str__(self) -> str:
        return "index"


INDEX = IndexType()
BOOL, INT32, INT64, FLOAT32 = dtype("bool"), dtype("int32"), dtype("int64"), dtype("float32")
Kind = DType | IndexType


def limits(kind: Kind) -> tuple[int, int]:
    """The smallest and the largest integer of an integer type."""
    info: Any = np.iinfo(kind.numpy) if kind.numpy.kind in "iu" else ml_dtypes.iinfo(kind.numpy)  # type: ignore[no-untyped-call]  # ml_dtypes'
    return int(info.min), int(info.max)


# --- conversions ---------------------------------------------------------------------------------------------------------

RANDOM: ContextVar[np.random.Generator | None] = ContextVar("tilelang_npu_random_rounding", default=None)
"""Where this is set, each inexact float result is rounded up or down at random. The spread of several runs then shows how much
of a difference rounding explains (discrete stochastic arithmetic, Vignes 1993).
"""


def finish(wide: Array, kind: Kind) -> Array:
    """Float64 results as elements of ``kind``: rounded to nearest even, or up or down at random."""
    wide = np.asarray(wide)
    made = wide.astype(kind.numpy)
    random = RANDOM.get()
    if random is None or kind.bits >= 64:
        return made
    back = made.astype(np.float64)
    inexact = np.isfinite(back) & (back != wide) & (random.random(wide.shape) < 0.5)
    return np.where(inexact, np.nextafter(made, np.where(wide > back, np.inf, -np.inf).astype(kind.numpy)), made)


def to_float(values: Array, kind: Kind) -> Array:
    """``values`` in a float type, rounded once to nearest even; to bfloat16 by way of float32, as the Vector core converts."""
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
    wide = np.nan_to_num(integral(values.astype(np.float64), mode), nan=0.0, posinf=np.inf, neginf=-np.inf)
    low, high = limits(kind)
    inside = (wide >= float(low)) & (wide < float(high) + 1.0)  # float(2**63 - 1) is 2**63
    whole = np.where(inside, wide, 0.0).astype(np.uint64 if high > 2**63 else np.int64)
    return np.where(inside, whole, np.where(wide < 0, low, high).astype(whole.dtype)).astype(kind.numpy)


def integral(values: Array, mode: str) -> Array:
    """Floats rounded to integers: ``rint`` (ties to even), ``round`` (ties away from zero), ``floor``, ``ceil``, ``trunc``, or
    ``odd`` (to the odd neighbour of a number that is not an integer).
    """
    if mode in ("rint", "floor", "ceil", "trunc"):
        return getattr(np, mode)(values)
    down = np.trunc(values)
    rest = np.abs(values - down)
    away = rest >= 0.5 if mode == "round" else (rest > 0) & (np.fmod(down, 2) == 0)
    return down + np.copysign(away.astype(values.dtype), values)


def convert(values: Array, kind: Kind, mode: str = "trunc") -> Array:
    """Scalars as elements of ``kind``; ``mode`` rounds floats that become integers."""
    if kind.is_bool:
        return np.asarray(values) != 0
    return to_float(values, kind) if kind.is_float else to_integer(values, kind, mode)


_SATURATING = {(np.dtype(np.int32), np.dtype(np.int16)), (np.dtype(np.int64), np.dtype(np.int32))}
"""Conversions between integers that are one instruction of the Vector core, which saturates; others wrap."""


def cast_elements(values: Array, kind: DType, mode: str = "rint") -> Array:
    """Elements of a tile converted as on the Vector core: rounded by ``mode``, saturating from a float to an integer."""
    values = np.asarray(values)
    whole = values.dtype.kind in "iub" or str(values.dtype) == "int4"
    if values.dtype == kind.numpy:
        return values
    if kind.is_bool:
        return values != 0
    if not kind.is_float:
        if not whole:
            return to_integer(values, kind, mode)
        return (np.clip(values, *limits(kind)) if (values.dtype, kind.numpy) in _SATURATING else values).astype(kind.numpy)
    if whole and values.dtype.itemsize >= 4 and kind.bits < 32:
        values = values.astype(np.float32)  # the conversion to 16 bits goes by way of float32, rounded to nearest
    return to_float(values, kind) if mode == "rint" else _directed(values, kind, mode)


def _directed(values: Array, kind: DType, mode: str) -> Array:
    """Numbers in a float type, rounded otherwise than to nearest even."""
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


class Operators:
    """Python's operators, for objects with a scalar value in a kernel; the binary ones are added below."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy leaves the operation to these operators

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
        """The value converted to another element type."""
        return cast(self, dtype(kind))


class TypedScalar(Operators):
    """A number with an element type.

    Attributes:
        value: a NumPy scalar, or an array over the points of the enclosing ``T.Parallel``.
        kind: its type.
        span: (axis, first value, step, count) of an array that runs along one axis of the loop in equal steps; else None.
        origin: the element that it was read from by an assignment; ``T.copy`` takes the name as that element.
    """

    __slots__ = ("kind", "origin", "span", "value")

    def __init__(self, value: Array, kind: Kind, span: tuple[int, int, int, int] | None = None) -> None:
        self.value, self.kind, self.span = value, kind, span
        self.origin: Any = None

    def single(self) -> Any:
        """The value as a NumPy scalar.

        Raises:
            NeedsPoints: the value is an array over points.
        """
        if np.ndim(self.value):
            raise NeedsPoints
        return self.value

    @property
    def dtype(self) -> Kind:
        """The type."""
        return self.kind

    def __repr__(self) -> str:
        return str(self.value)

    def __format__(self, layout: str) -> str:
        return format(self.value.item() if np.ndim(self.value) == 0 else self.value, layout)


class IndexInt(int):
    """A Python integer of the type ``index``: a loop variable, a block id, a size."""

    __slots__ = ()


def _enter(name: str, compute: Callable[[str, Any, Any], Any], *, both: bool) -> None:
    """Adds a binary operator to scalars and indices; with ``both`` also its reflection."""
    for owner in (Operators, IndexInt):
        setattr(owner, f"__{name}__", lambda self, other: compute(name, self, other))
        if both:
            setattr(owner, f"__r{name}__", lambda self, other: compute(name, other, self))


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift", "pow"):
    _enter(_name, lambda name, left, right: binary(name, left, right) if name != "pow" else power(left, right), both=True)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _enter(_name, lambda name, left, right: compare(name, left, right), both=False)
for _name in ("neg", "invert", "abs"):
    setattr(IndexInt, f"__{_name}__", getattr(Operators, f"__{_name}__"))
IndexInt.__hash__ = int.__hash__  # type: ignore[method-assign]  # an equal hash for an equal number


def scalar(value: Any) -> TypedScalar:
    """The scalar of a value: the value itself, the contents of an element, or a Python number with its default type.

    Raises:
        TypeError: it is not a scalar.
    """
    if isinstance(value, TypedScalar):
        return value
    if isinstance(value, IndexInt):
        return TypedScalar(np.int64(value), INDEX)
    if hasattr(value, "load"):
        found: TypedScalar = value.load()
        return found
    if isinstance(value, (bool, np.bool_)):
        return TypedScalar(np.bool_(value), BOOL)
    if isinstance(value, (int, np.integer)):
        kind = INT32 if -2**31 <= value < 2**31 else INT64
        return TypedScalar(kind.numpy.type(value), kind)
    if isinstance(value, (float, np.floating)):
        return TypedScalar(np.float32(value), FLOAT32)
    msg = f"{value!r} is not a scalar"
    raise TypeError(msg)


def is_literal(value: Any) -> bool:
    """Whether this is a plain number, which takes the type of the other operand."""
    return isinstance(value, (bool, int, float, np.generic)) and not isinstance(value, IndexInt)


def is_scalar(value: Any) -> bool:
    """Whether the value is a number, a scalar of the kernel, or an element, whose contents are read where a number is needed.
    """
    return isinstance(value, (Operators, bool, int, float, np.generic))


def promote(left: Kind, right: Kind) -> Kind:
    """The common type of two scalars."""
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


def adopted(literal: Any, kind: Kind) -> Kind:
    """The type of a Python number with an operand of type ``kind``."""
    if isinstance(literal, (float, np.floating)):
        return kind if kind.is_float else FLOAT32
    if isinstance(literal, (bool, np.bool_)) or kind.is_float or kind is INDEX:
        return kind
    for candidate in (INT32,) if kind.is_bool else (kind, INT32):
        low, high = limits(candidate)
        if low <= literal <= high:
            return candidate
    return INT64


def meet(left: Any, right: Any) -> tuple[Array, Array, Kind]:
    """The values of both operands in their common type, and that type."""
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


def literal(number: Any, kind: Kind) -> Array:
    """A Python number as a NumPy scalar of a type."""
    if kind.is_float:
        return to_float(np.float64(number), kind)[()]
    return np.bool_(number) if kind.is_bool else kind.numpy.type(int(number))


# --- arithmetic ----------------------------------------------------------------------------------------------------------


def _truncated(a: Any, b: Any) -> Any:
    """The quotient without its fraction."""
    if isinstance(a, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    quotient = np.floor_divide(a, b)
    return np.where((quotient * b != a) & ((a < 0) != (b < 0)) & (b != 0), quotient + 1, quotient).astype(a.dtype)


def shifted(a: Array, b: Array, *, left: bool) -> Array:
    """``a`` shifted by ``b`` bits; a shift by the width or more, or by a negative amount, moves all bits out."""
    inside = (b >= 0) & (b < 8 * a.dtype.itemsize)
    amount = np.where(inside, b, 0).astype(a.dtype)
    out = np.where(a < 0, 0 if left else -1, 0).astype(a.dtype)
    return np.where(inside, np.left_shift(a, amount) if left else np.right_shift(a, amount), out).astype(a.dtype)


_SHARED: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "floordiv": operator.floordiv, "mod": operator.mod, "truncdiv": _truncated,
    "truncmod": lambda a, b: a - _truncated(a, b) * b}
"""Operators that are the same function for Python's integers and NumPy's."""
_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    **_SHARED, "truediv": operator.truediv, "lshift": operator.lshift, "rshift": operator.rshift, "min": min, "max": max}
_INTEGERS: dict[str, Callable[[Array, Array], Array]] = {
    **_SHARED, "min": np.minimum, "max": np.maximum, "lshift": lambda a, b: shifted(a, b, left=True),
    "rshift": lambda a, b: shifted(a, b, left=False)}
_FLOATS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "min": np.minimum, "max": np.maximum}


def binary(name: str, left: Any, right: Any) -> Any:
    """``left name right`` for ``+ - * / // % & | ^ << >>``, ``min``, ``max``, ``truncdiv`` and ``truncmod``."""
    if isinstance(left, int) and isinstance(right, int) and name != "truediv":
        found = _PYTHON[name](int(left), int(right))
        return IndexInt(found) if isinstance(left, IndexInt) or isinstance(right, IndexInt) else found
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
        return TypedScalar(_on_floats(name, a, b, kind), kind)
    return TypedScalar(_INTEGERS[name](a, b), kind, _span(name, left, right))


def _on_floats(name: str, a: Array, b: Array, kind: Kind) -> Array:
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


def _span(name: str, left: Any, right: Any) -> tuple[int, int, int, int] | None:
    """The span of a sum, a difference or a product of a span and an integer; else None."""
    for side, other, reflected in ((left, right, False), (right, left, True)):
        if isinstance(side, TypedScalar) and side.span is not None and isinstance(other, int):
            axis, first, step, count = side.span
            if name == "add" or (name == "sub" and not reflected):
                return axis, first + (int(other) if name == "add" else -int(other)), step, count
            if name == "mul" and other > 0:
                return axis, first * int(other), step * int(other), count
    return None


def compare(name: str, left: Any, right: Any) -> Any:
    """A comparison (``lt le gt ge eq ne``) as a truth value."""
    if not (is_scalar(left) and is_scalar(right)):
        return NotImplemented
    if is_literal(left) and is_literal(right):
        return getattr(operator, name)(left, right)
    if isinstance(left, int) and isinstance(right, int):
        return TypedScalar(np.bool_(getattr(operator, name)(int(left), int(right))), BOOL)
    a, b, _ = meet(left, right)
    return TypedScalar(getattr(operator, name)(a, b), BOOL)


def truth(value: Any) -> TypedScalar:
    """Whether a scalar differs from zero."""
    found = scalar(value)
    return found if found.kind.is_bool else TypedScalar(np.asarray(found.value != 0, np.bool_)[()], BOOL)


def select(condition: Any, chosen: Any, other: Any) -> TypedScalar:
    """``chosen`` where the condition holds, else ``other``, in their common type."""
    a, b, kind = meet(chosen, other)
    chosen_values: Array = np.where(truth(condition).value, a, b)
    return TypedScalar(chosen_values[()].astype(kind.numpy), kind)


def negate(value: Any) -> Any:
    """``-value``; for integers ``0 - value``."""
    if isinstance(value, int) or is_literal(value):
        return IndexInt(-int(value)) if isinstance(value, IndexInt) else -value
    found = scalar(value)
    return TypedScalar(-found.value, found.kind) if found.kind.is_float else binary("sub", 0, found)


def invert(value: Any) -> Any:
    """The complement of an integer's bits, or of a truth value."""
    if is_literal(value):
        return ~value
    found = scalar(value)
    return TypedScalar(np.invert(found.value), found.kind)


def absolute(value: Any) -> Any:
    """The absolute value; the smallest integer stays as it is."""
    if is_literal(value):
        return abs(value)
    found = scalar(value)
    return TypedScalar(np.abs(found.value), found.kind)


def power(left: Any, right: Any) -> Any:
    """``left ** right``: integer exponents from 0 to 8 are products, 0.5 and -0.5 square roots; others are computed in floats.
    """
    if is_literal(right) and is_literal(left):
        return left**right
    if is_literal(right) and right == int(right) and 0 <= right <= 8:
        if right == 0:
            return binary("add", binary("mul", left, 0), 1)
        result = left
        for _ in range(int(right) - 1):
            result = binary("mul", result, left)
        return result
    if is_literal(right) and abs(right) == 0.5:
        return function((lambda a: np.sqrt(a)) if right > 0 else (lambda a: 1 / np.sqrt(a)), left)
    return function(np.power, left, right)


def rounded(compute: Callable[..., Array], kind: Kind, *values: Array) -> Array:
    """A function of floats: computed in float32 (float64 for float64), and rounded once to ``kind``."""
    wide = np.float64 if kind.bits == 64 or RANDOM.get() is not None else np.float32
    return finish(np.asarray(compute(*[np.asarray(value).astype(wide) for value in values])), kind)[()]


def function(compute: Callable[..., Array], *values: Any) -> Any:
    """A function of one or two scalars; integers are converted to float32 first."""
    if all(is_literal(value) for value in values):
        return compute(*[np.float64(value) for value in values]).item()
    *arrays, kind = [scalar(values[0]).value, scalar(values[0]).kind] if len(values) == 1 else meet(*values)
    if not kind.is_float:
        arrays, kind = [to_float(value, FLOAT32) for value in arrays], FLOAT32
    return TypedScalar(rounded(compute, kind, *arrays), kind)


def mode_to_integer() -> str:
    """How floats become integers: to nearest even in a ``T.Parallel`` of the npuir dialect, as its vector casts do; elsewhere
    truncated.
    """
    core = current()
    return "rint" if core.in_parallel and core.dialect == "npuir" else "trunc"


def cast(value: Any, kind: DType) -> TypedScalar:
    """A scalar converted to another type.

    Floats become integers as :func:`mode_to_integer` says and saturate, integers wrap, floats round to nearest even.
    """
    if not is_literal(value):
        return TypedScalar(convert(scalar(value).value, kind, mode_to_integer())[()], kind)
    if kind.is_float or kind.is_bool:
        return TypedScalar(literal(value, kind), kind)
    whole = np.asarray(value, np.float64) if isinstance(value, float) else np.asarray(int(value))
    return TypedScalar(to_integer(whole, kind)[()], kind)


def erf(values: Array) -> Array:
    """The error function of each element, in float64."""
    return np.vectorize(math.erf, otypes=[np.float64])(values) if np.size(values) else np.asarray(values, np.float64)
