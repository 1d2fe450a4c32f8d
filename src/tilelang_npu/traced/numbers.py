"""Python's numbers as elements: a number that an element type does not have is an error.

As in NumPy 2, an integer type takes integers of its range. A float type takes numbers that do not overflow, rounded to nearest
even, and the infinities and nan that it has.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.linear import Interval
from tilelang_npu.ops import DType
from tilelang_npu.traced.author import user_location
from tilelang_npu.traced.linear_forms import bounds_of, wrap

_WIDER = ("int16", "int32", "int64")


def rounded(value: int | float | bool, kind: DType) -> int | float | bool:
    """A result in type ``kind``: floats round, and overflow to the type's infinity or nan; integers wrap."""
    if kind.is_float:
        with np.errstate(over="ignore"):
            return float(np.asarray(value, dtype=np.float64).astype(kind.numpy))
    return bool(value) if kind.is_bool else wrap(int(value), kind)


def refusal(value: int | float | bool, kind: DType, role: str) -> TileError | None:
    """The error for a number that an element type does not have; None where the type has it.

    Args:
        value: the number as it was written.
        kind: the element type.
        role: the number's name in the message: ``the value``.
    """
    if kind.is_float:
        made = rounded(value, kind) if not isinstance(value, int) or abs(value) < 1 << 1023 else math.inf
        if math.isnan(made) == math.isnan(value) and (math.isfinite(made) or not math.isfinite(value)):
            return None
        largest = _largest(kind)
        return TileError(f"{role} is {value!r}, which {kind} does not have: its largest is {largest:g}", code="T110",
                         help=_way_out(value, kind, largest))
    held = bounds_of(kind)
    if not math.isfinite(value):
        return TileError(f"{role} is {value!r}, which {kind} does not have", code="T110",
                         help="use elements of a float type, which has nan" if math.isnan(value) else
                         f"write the largest or the smallest number of the type, {held.high} or {held.low}")
    if value != int(value):
        return TileError(f"{role} is {value!r}, which {kind} does not have", code="T110",
                         help="write a whole number, or use elements of float32; T.cast drops a fraction")
    exact = Interval.at(int(value))
    if exact.within(held):
        return None
    wider = next((name for name in _WIDER if exact.within(bounds_of(DType(name)))), None)
    return TileError(f"{role} is {value!r}, which {kind} does not have: it has {held.low} to {held.high}", code="T110",
                     help="write a number of that range" + (f", or use elements of {wider}" if wider else ""))


def cast(value: int | float | bool, kind: DType) -> int | float | bool:
    """A number that the author converts outside of a kernel: rounded, or without its fraction.

    Raises:
        TileError: T110, the type does not have it.
    """
    if kind.is_bool:
        return bool(value)
    given = value if kind.is_float else whole(value)
    wrong = refusal(given, kind, "the number")
    if wrong is not None:
        raise wrong.at(user_location())
    return rounded(given, kind)


def whole(value: int | float | bool) -> int | float | bool:
    """The number without its fraction."""
    return int(value) if math.isfinite(value) else value


def vanishes(value: int | float | bool, kind: DType) -> bool:
    """Whether a number that is not 0 becomes 0 by rounding to the type."""
    return kind.is_float and value != 0 and rounded(value, kind) == 0


def _largest(kind: DType) -> float:
    import ml_dtypes

    info: Any = ml_dtypes.finfo  # which declares no type
    return float(info(kind.numpy).max)


def _way_out(value: int | float | bool, kind: DType, largest: float) -> str:
    if not math.isfinite(value):
        return f"{kind} has no infinity; its largest number is {largest:g}"
    sign = "-" if value < 0 else ""
    meant = f"float('{sign}inf') for infinity, {sign}{largest:g} for the largest number"
    return f"write {meant}" + ("" if kind.bits >= 32 else ", or use elements of float32")
