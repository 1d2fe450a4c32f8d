"""What Python's numbers are as elements: a number that an element type does not have is refused, not bent to one that it has.

As in NumPy 2: an integer type takes whole numbers of its range (no -1 for unsigned ones), a float type takes all that do not
overflow, rounded to nearest even, and the infinities and nan that it has, written as such.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.linear import Interval
from tilelang_npu.ops import DType
from tilelang_npu.traced.author import user_location
from tilelang_npu.traced.forms import bounds_of, wrap

_WIDER = ("int16", "int32", "int64")


def rounded(value: int | float | bool, kind: DType) -> int | float | bool:
    """A result as ``kind`` has it: floats round, and overflow to what the type has for that; integers wrap."""
    if kind.is_float:
        with np.errstate(over="ignore"):
            return float(np.asarray(value, dtype=np.float64).astype(kind.numpy))
    return bool(value) if kind.is_bool else wrap(int(value), kind)


def refusal(value: int | float | bool, kind: DType, role: str) -> TileError | None:
    """Why a number is no value of an element type; None where it is one.

    Args:
        value: the number as it was written.
        kind: the element type.
        role: what the number is, for the message: ``the value``.
    """
    if kind.is_float:
        made = rounded(value, kind) if not isinstance(value, int) or abs(value) < 1 << 1023 else math.inf
        if math.isnan(made) == math.isnan(value) and (math.isfinite(made) or not math.isfinite(value)):
            return None
        largest = _largest(kind)
        return TileError(f"{role} is {value!r}, which is no value of {kind}: its largest is {largest:g}", code="T110",
                         help=_way_out(value, kind, largest))
    held = bounds_of(kind)
    if not math.isfinite(value):
        return TileError(f"{role} is {value!r}, which is no value of {kind}", code="T110",
                         help="use elements of a float type, which has nan" if math.isnan(value) else
                         f"write the largest or the smallest number of the type, {held.high} or {held.low}")
    if value != int(value):
        return TileError(f"{role} is {value!r}, which is no value of {kind}", code="T110",
                         help="write a whole number, or use elements of float32; T.cast drops a fraction")
    exact = Interval.at(int(value))
    if exact.within(held):
        return None
    wider = next((name for name in _WIDER if exact.within(bounds_of(DType(name)))), None)
    return TileError(f"{role} is {value!r}, which is no value of {kind}: it has {held.low} to {held.high}", code="T110",
                     help="write a number of that range" + (f", or use elements of {wider}" if wider else ""))


def cast(value: int | float | bool, kind: DType) -> int | float | bool:
    """A number as the author casts it outside of a kernel: rounded, or without its fraction.

    Raises:
        TileError: T110, it is no value of the type even so.
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
    meant = f"float('{sign}inf') if infinity is meant, {sign}{largest:g} for the largest number"
    return f"write {meant}" + ("" if kind.bits >= 32 else ", or use elements of float32")
