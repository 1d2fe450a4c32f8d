"""An independent implementation of every operation, in exact integers or in float64 with one rounding; it does not use the
table.

``expected(name, inputs)`` works on arrays of the operation's element types and returns the destination. ``ULPS`` says how many
units in the last place a result may be off, for functions whose float32 value is not the rounded exact one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def is_integer(array: Array) -> bool:
    return array.dtype.kind in "iu"


def rounded(values: Array, kind: np.dtype[Any]) -> Array:
    """float64 values in a float type: bfloat16 by way of float32, as the Vector core makes it."""
    with np.errstate(all="ignore"):
        return values.astype(np.float32).astype(kind) if kind == ml_dtypes.bfloat16 else values.astype(kind)


def wrapped(values: Sequence[int], like: Array) -> Array:
    """Integers modulo the range of a type."""
    bits = 8 * like.dtype.itemsize
    low = -(1 << (bits - 1)) if like.dtype.kind == "i" else 0
    return np.array([(value - low) % (1 << bits) + low for value in values], like.dtype).reshape(like.shape)


def integers(function: Callable[..., int]) -> Callable[..., Array]:
    """A function of Python's integers, element by element, wrapped."""
    def apply(*inputs: Array) -> Array:
        lists = [[int(value) for value in array.reshape(-1)] for array in np.broadcast_arrays(*inputs)]
        return wrapped([function(*values) for values in zip(*lists, strict=True)], np.broadcast_arrays(*inputs)[0])

    return apply


def floats(function: Callable[..., Any]) -> Callable[..., Array]:
    """A function of float64 arrays, rounded once to the type of the inputs."""
    def apply(*inputs: Array) -> Array:
        with np.errstate(all="ignore"):
            return rounded(np.asarray(function(*[array.astype(np.float64) for array in inputs])), inputs[0].dtype)

    return apply


def by_kind(of_integers: Callable[..., int], of_floats: Callable[..., Any]) -> Callable[..., Array]:
    def apply(*inputs: Array) -> Array:
        return integers(of_integers)(*inputs) if inputs[0].dtype.kind in "iub" else floats(of_floats)(*inputs)

    return apply


def truncated(a: int, b: int) -> int:
    """Returns the truncated quotient; 0 if the divisor is 0."""
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    return 0 if b == 0 else a - b * truncated(a, b)


def unsigned(function: Callable[..., int]) -> Callable[..., Array]:
    """A function of the elements read as unsigned."""
    def apply(*inputs: Array) -> Array:
        if inputs[0].dtype == np.bool_:
            return integers(function)(*[array.astype(np.uint8) for array in inputs]).astype(np.bool_)
        kind = inputs[0].dtype
        return integers(function)(*[array.view(f"u{kind.itemsize}") for array in inputs]).view(kind)

    return apply


def bits(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of the bit patterns."""
    def apply(*inputs: Array) -> Array:
        kind = inputs[0].dtype
        if kind == np.bool_:
            return function(*inputs)
        return function(*[np.ascontiguousarray(array).view(f"u{kind.itemsize}") for array in inputs]).view(kind)

    return apply


def shifted(values: Array, amounts: Array, *, left: bool) -> Array:
    """A shift by the width or more, or by a negative amount, moves every bit out."""
    width = 8 * values.dtype.itemsize

    def one(value: int, amount: int) -> int:
        by = amount if 0 <= amount < width else width
        return value << by if left else value >> by

    return integers(one)(values, amounts)


def power(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << 64)
    return a if a in (1, -1) and b % 2 else 1 if a in (1, -1) else 0


def extreme(larger: bool) -> Callable[..., Array]:
    """Returns the larger or smaller element; NaN if an input is NaN."""
    def apply(a: Array, b: Array) -> Array:
        if a.dtype.kind in "iub":
            return np.where((a > b) == larger, a, b)
        x, y = a.astype(np.float64), b.astype(np.float64)
        picked = np.where((x > y) == larger, x, y)
        return rounded(np.where(np.isnan(x) | np.isnan(y), np.nan, picked), a.dtype)

    return apply


def exponent(value: float) -> float:
    if value == 0:
        return -math.inf
    return math.frexp(value)[1] - 1 if math.isfinite(value) else abs(value)


def each(function: Callable[[float], float]) -> Callable[..., Array]:
    """A function of Python's floats, element by element."""
    def apply(values: Array) -> Array:
        return np.array([function(float(value)) for value in values.reshape(-1)]).reshape(values.shape)

    return apply


def stepwise(function: Callable[..., Array]) -> Callable[..., Array]:
    """A composite: ``function(r, *inputs)`` on float64 arrays rounds with ``r`` after each step; integers wrap."""
    def apply(*inputs: Array) -> Array:
        kind = inputs[0].dtype
        if kind.kind in "iu":
            return wrapped([int(v) for v in np.asarray(function(lambda v: v, *[a.astype(object) for a in inputs])).reshape(-1)],
                           inputs[0])

        def r(values: Any) -> Array:
            return rounded(np.asarray(values), kind).astype(np.float64)

        with np.errstate(all="ignore"):
            return rounded(function(r, *[array.astype(np.float64) for array in inputs]), kind)

    return apply


def _logistic(r: Any, a: Array) -> Array:
    return r(1 / r(r(np.exp(r(0 - a))) + 1))


def _silu(r: Any, a: Array) -> Array:
    return r(a / r(r(np.exp(r(0 - a))) + 1))


def _leaky(r: Any, a: Array, slope: Array) -> Array:
    return r(np.maximum(a, 0) + r(np.minimum(a, 0) * slope))


def _truth(test: Callable[..., Array]) -> Callable[..., Array]:
    def apply(*inputs: Array) -> Array:
        wide = [array.astype(np.float64) if array.dtype.kind not in "iub" else array for array in inputs]
        return test(*wide)

    return apply


ELEMENTWISE: dict[str, Callable[..., Array]] = {
    "exp": floats(np.exp), "ln": floats(np.log), "sqrt": floats(np.sqrt), "rsqrt": floats(lambda a: 1 / np.sqrt(a)),
    "reciprocal": floats(lambda a: 1 / a), "abs": by_kind(abs, np.abs),
    "relu": by_kind(lambda a: max(a, 0), lambda a: np.where(a > 0, a, np.where(np.isnan(a), a, 0.0))),
    "bitwise_not": bits(np.invert),
    "add": by_kind(lambda a, b: a + b, np.add), "sub": by_kind(lambda a, b: a - b, np.subtract),
    "mul": by_kind(lambda a, b: a * b, np.multiply), "div": by_kind(truncated, np.divide),
    "max": extreme(True), "min": extreme(False),
    "bitwise_and": bits(np.bitwise_and), "bitwise_or": bits(np.bitwise_or), "bitwise_xor": bits(np.bitwise_xor),
    "bitwise_lshift": lambda a, b: shifted(a, b, left=True), "bitwise_rshift": lambda a, b: shifted(a, b, left=False),
    "compare": _truth(lambda a, b: a < b), "select": lambda mask, a, b: np.where(mask, a, b),
    "tanh": floats(np.tanh), "sin": floats(np.sin), "cos": floats(np.cos), "tan": floats(np.tan), "atan": floats(np.arctan),
    "erf": floats(each(math.erf)), "exp2": floats(np.exp2), "log2": floats(np.log2),
    "log10": floats(np.log10),
    "log1p": floats(np.log1p), "expm1": floats(np.expm1), "ilogb": floats(each(exponent)),
    "isinf": _truth(np.isinf), "isnan": _truth(np.isnan),
    "mod": by_kind(remainder, np.fmod), "modui": unsigned(lambda a, b: a % b if b else 0),
    "pow": by_kind(power, np.power), "ldexp": floats(lambda a, b: a * np.exp2(b)),
    "sigmoid": stepwise(_logistic), "silu": stepwise(_silu), "leaky_relu": stepwise(_leaky),
    "axpy": stepwise(lambda r, a, s, d: r(d + r(a * s))), "mul_add_dst": stepwise(lambda r, a, b, d: r(d + r(a * b))),
    "clamp": lambda a, low, high: extreme(False)(extreme(True)(a, low), high),
    "clamp_min": extreme(True), "clamp_max": extreme(False), "round": floats(np.rint),
    "floor": floats(np.floor), "floordiv": by_kind(lambda a, b: a // b if b else 0, np.floor_divide),
}
"""By name: the destination from the inputs (and from its old contents, if the operation reads them)."""

ULPS: dict[str, int] = {
    **dict.fromkeys(("exp", "ln", "tanh", "sin", "cos", "atan", "erf", "exp2", "log2", "log10", "log1p", "expm1", "pow"), 2),
    "tan": 4, "rsqrt": 1, "sigmoid": 3, "silu": 3}


def sums(values: Array, axis: int) -> Array:
    """A sum along an axis: integers wrap, floats are added exactly and rounded once."""
    if is_integer(values):
        totals = values.astype(object).sum(axis=axis, keepdims=True)
        return wrapped([int(total) for total in totals.reshape(-1)], np.empty(totals.shape, values.dtype))
    return rounded(values.astype(np.float64).sum(axis=axis, keepdims=True), values.dtype)


def _extreme_along(larger: bool) -> Callable[..., Array]:
    def apply(values: Array, axis: int) -> Array:
        wide = values.astype(np.float64) if values.dtype.kind not in "iu" else values
        return (wide.max if larger else wide.min)(axis=axis, keepdims=True).astype(values.dtype)

    return apply


def _along(function: Callable[[list[int]], int]) -> Callable[..., Array]:
    """A function of the numbers along an axis; results wrap. Floats here are whole numbers that the type holds."""
    def apply(values: Array, axis: int) -> Array:
        lines = np.moveaxis(values, axis, -1)
        found = [function([int(value) for value in line]) for line in lines.reshape(-1, lines.shape[-1])]
        result = np.expand_dims(np.empty(lines.shape[:-1], values.dtype), axis)
        if is_integer(values):
            return wrapped(found, result)
        return np.array(found, values.dtype).reshape(result.shape)

    return apply


REDUCTIONS: dict[str, Callable[..., Array]] = {
    "reduce_sum": sums, "reduce_max": _extreme_along(True), "reduce_min": _extreme_along(False),
    "reduce_prod": _along(math.prod), "reduce_any": _along(lambda line: int(any(line))),
    "reduce_all": _along(lambda line: int(all(line))), "reduce_bitxor": _along(lambda line: reduce(operator.xor, line)),
    "reduce_bitor": _along(lambda line: reduce(operator.or_, line)),
    "reduce_bitand": _along(lambda line: reduce(operator.and_, line))}
COMBINED = {"reduce_sum": "add", "reduce_max": "max", "reduce_min": "min", "reduce_prod": "mul", "reduce_any": "max",
            "reduce_all": "min", "reduce_bitxor": "bitwise_xor", "reduce_bitor": "bitwise_or", "reduce_bitand": "bitwise_and"}
"""Functions that combine a result with the old contents of the destination."""


def units(got: Array, wanted: Array) -> Array:
    """Returns the number of values of a float type between two arrays; 0 if both are NaN."""
    width = got.dtype.itemsize
    signed = np.dtype(f"i{width}")

    def place(values: Array) -> Array:
        steps = np.ascontiguousarray(values).view(signed).astype(np.int64)
        return np.where(steps < 0, -(steps & ((1 << (8 * width - 1)) - 1)), steps)

    missing = np.isnan(got.astype(np.float64)) & np.isnan(wanted.astype(np.float64))
    return np.where(missing, 0, np.abs(place(got) - place(wanted)))


def assert_same(got: Array, wanted: Array, ulps: int = 0, case: str = "") -> None:
    """Asserts equal elements, including NaN; floats may differ by ``ulps``. If that is 0, the sign of zero must be equal."""
    assert got.shape == wanted.shape, case
    assert got.dtype == wanted.dtype, case
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, wanted, err_msg=case)
        return
    with np.errstate(invalid="ignore"):  # bit patterns that are signalling NaN
        off = units(got, wanted)
        bad = (off > ulps) | (np.isinf(got) != np.isinf(wanted))
        if ulps == 0:
            bad = bad | (np.signbit(got) != np.signbit(wanted)) & (got == 0)
    assert not bad.any(), f"{case}: {got[bad][:4]} instead of {wanted[bad][:4]}, {off[bad][:4]} units off"
