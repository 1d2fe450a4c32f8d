"""Conversion of Python numbers to element types; a number that an element type cannot represent is an error.

As in NumPy 2, an integer type represents the integers of its range. A float type represents numbers that do not overflow (they
are rounded to nearest even), and infinities and nan if the type has them.
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
    """Returns a computed number in type ``kind``: a float is rounded, and overflows to infinity or nan; an integer wraps."""
    if kind.is_float:
        with np.errstate(over="ignore"):
            return float(np.asarray(value, dtype=np.float64).astype(kind.numpy))
    return bool(value) if kind.is_bool else wrap(int(value), kind)


def refusal(value: int | float | bool, kind: DType, role: str) -> TileError | None:
    """Returns the error for a number that an element type cannot represent; None if the type can represent the number.

    Args:
        value: the number as the author wrote it.
        kind: the element type.
        role: the name of the number in the message, such as ``the value``.

    Returns:
        A T110 error, or None.
    """
    if kind.is_float:
        made = rounded(value, kind) if not isinstance(value, int) or abs(value) < 1 << 1023 else math.inf
        if math.isnan(made) == math.isnan(value) and (math.isfinite(made) or not math.isfinite(value)):
            return None
        largest = _largest(kind)
        return TileError(f"{role} is {value!r}, which {kind} does not have: its largest number is {largest:g}", code="T110",
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
    return TileError(f"{role} is {value!r}, which {kind} does not have: its range is {held.low} to {held.high}", code="T110",
                     help="write a number in that range" + (f", or use elements of {wider}" if wider else ""))


def cast(value: int | float | bool, kind: DType) -> int | float | bool:
    """Returns a number converted to an element type by a cast outside of a kernel.

    A number is rounded to a float type, and truncated to an integer type.

    Raises:
        TileError: T110, the type cannot represent the number.
    """
    if kind.is_bool:
        return bool(value)
    given = value if kind.is_float else whole(value)
    wrong = refusal(given, kind, "the number")
    if wrong is not None:
        raise wrong.at(user_location())
    return rounded(given, kind)


def whole(value: int | float | bool) -> int | float | bool:
    """Returns the number truncated to an integer; infinities and nan are returned unchanged."""
    return int(value) if math.isfinite(value) else value


def vanishes(value: int | float | bool, kind: DType) -> bool:
    """Whether a number other than 0 is rounded to 0 in a float type."""
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
