"""Conversions between element types with the rules of the Vector core: round modes, saturation, wrapping.

A conversion to a narrower float rounds by the mode, and overflow gives infinity (INF_NAN mode, the default on A2 and later). A
conversion to an integer rounds by the mode and saturates; NaN gives zero. A conversion between integers saturates under
``rint`` and wraps under ``truncwithoverflow``. (Ascend C documentation, Cast, table of conversion rules.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tilelang_npu.target.dtypes import DType

MODES = ("rint", "round", "floor", "ceil", "trunc", "odd", "truncwithoverflow")
Array = NDArray[Any]
"""An array whose element type is known at run time."""
Operand = Array | float
"""An input of a meaning: an array, or a scalar."""
Convert = Callable[[Array], Array]

_INTEGRAL: dict[str, Callable[[Array], Array]] = {
    "rint": np.rint, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "truncwithoverflow": np.trunc}


def integral(values: Array, mode: str) -> Array:
    """Returns the f32 or f64 values rounded to integers, in the same float type.

    ``mode`` is one of ``MODES``. ``round`` rounds halves away from zero; ``odd`` rounds non-integers to the adjacent odd
    integer.
    """
    rounded = _INTEGRAL.get(mode)
    if rounded is not None:
        return rounded(values)
    whole = np.trunc(values)
    rest = np.abs(values - whole)
    if mode == "round":
        return np.asarray(whole + np.copysign((rest >= 0.5).astype(values.dtype), values))
    up = (rest > 0) & (np.fmod(whole, 2) == 0)
    return np.asarray(whole + np.copysign(up.astype(values.dtype), values))


def _float_to_float(values: Array, target: np.dtype[np.generic], mode: str) -> Array:
    """Rounds f32 or f64 values to a narrower float type, by incrementing or decrementing the bits of the nearest value."""
    nearest = values.astype(target)
    if mode == "rint":
        return nearest
    width = target.itemsize * 8
    unsigned = np.dtype(f"u{target.itemsize}")
    exact = values.astype(np.float64)
    back = nearest.astype(np.float64)
    bits = np.atleast_1d(nearest).view(unsigned).reshape(nearest.shape).astype(np.int64)
    sign = bits >> (width - 1) << (width - 1)
    magnitude = bits - sign
    negative = sign != 0
    larger = np.abs(back) > np.abs(exact)
    inexact = (back != exact) & np.isfinite(exact)
    toward_zero = magnitude - (larger & inexact)
    if mode in ("trunc", "truncwithoverflow"):
        step = toward_zero
    elif mode == "floor":
        step = toward_zero + (negative & inexact)
    elif mode == "ceil":
        step = toward_zero + (~negative & inexact)
    elif mode == "odd":
        step = np.where(inexact, toward_zero | 1, magnitude)
    else:  # round: only exact halves differ from rint, where rint took the even neighbour below
        above = (toward_zero + 1).astype(unsigned).view(target).astype(np.float64)
        half = inexact & ~larger & (above - np.abs(exact) == np.abs(exact) - np.abs(back))
        step = np.where(half, toward_zero + 1, magnitude)
    return np.asarray((step + sign).astype(unsigned).view(target)).reshape(values.shape)


def _limits(target: np.dtype[np.generic]) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    if target.kind in "iu":
        known = np.iinfo(target.name)
        return int(known.min), int(known.max)
    narrow = ml_dtypes.iinfo(target)  # type: ignore[no-untyped-call]  # ml_dtypes'
    return int(narrow.min), int(narrow.max)


def _to_integer(values: Array, target: np.dtype[np.generic], mode: str) -> Array:
    whole = integral(values, mode)
    if mode == "truncwithoverflow":
        return np.nan_to_num(whole, nan=0.0).astype(np.int64).astype(target)
    low, high = _limits(target)
    wide = whole.astype(np.float64)
    inside = np.where((wide >= low) & (wide < float(high) + (1.0 if high < 2**52 else 0.0)), wide, 0.0)
    result = inside.astype(np.uint64 if high > 2**63 else np.int64)
    return np.where(wide >= float(high), high, np.where(wide < low, low, result)).astype(target)


def _integer_to_float(values: Array, target: np.dtype[np.generic], mode: str) -> Array:
    if mode == "rint" and target.itemsize >= 4:
        return values.astype(target)  # the C conversion rounds once, to nearest even
    if values.dtype.itemsize < 8 or target.itemsize < 4:
        return _float_to_float(values.astype(np.float64), target, mode)
    nearest = values.astype(target)
    over = nearest >= 2.0**63  # does not fit back into an int64
    back = np.where(over, 0, nearest).astype(np.int64)
    larger, smaller = over | (back > values), ~over & (back < values)
    below = np.where(larger, np.nextafter(nearest, target.type(-np.inf)), nearest)
    above = np.where(smaller, np.nextafter(nearest, target.type(np.inf)), nearest)
    if mode == "floor":
        return below
    if mode == "ceil":
        return above
    if mode in ("trunc", "truncwithoverflow"):
        return np.where(values >= 0, below, above)
    if mode == "odd":
        even = (nearest.view(np.uint32) & 1) == 0
        return np.where((larger | smaller) & even, np.where(larger, below, above), nearest)
    low, high = below.astype(np.float64), above.astype(np.float64)
    middle = (low / 2 + high / 2).astype(np.int64)  # exact: both have 24 bits
    half = (larger | smaller) & (middle == values)
    return np.where(half, np.where(values >= 0, above, below), nearest)


def _integer_to_integer(values: Array, target: np.dtype[np.generic], mode: str) -> Array:
    if mode == "truncwithoverflow" or values.dtype.itemsize < target.itemsize:
        return values.astype(target)
    return np.clip(values, *_limits(target)).astype(target)


def _unsigned(element: DType) -> np.dtype[np.generic]:
    return np.dtype(f"u{element.numpy.itemsize}") if element.is_integer else element.numpy


def conversion(source: DType, target: DType, mode: str = "rint", *, unsigned: bool = False) -> Convert:
    """Returns a function that converts an array of ``source`` elements to a new array of ``target`` elements.

    Args:
        source: element type of the input.
        target: element type of the result.
        mode: one of ``MODES``.
        unsigned: whether integers are unsigned (``cast = cast_unsigned``).

    Raises:
        ValueError: the mode is unknown.
    """
    if mode not in MODES:
        msg = f"unknown round mode {mode!r}; known are {', '.join(MODES)}"
        raise ValueError(msg)
    made = _unsigned(target) if unsigned else target.numpy
    if target.is_bool:
        return lambda values: values != 0
    if source.is_bool:
        return lambda values: values.astype(made)
    if source.is_float and target.is_float:
        if source == target:
            return lambda values: integral(values.astype(np.float32), mode).astype(made)
        if target.bits > source.bits:
            return lambda values: values.astype(made)
        wide = np.float64 if source.bits == 64 else np.float32
        return lambda values: _float_to_float(values.astype(wide), made, mode)
    if source.is_float:
        return lambda values: _to_integer(values.astype(np.float32 if source.bits <= 32 else np.float64), made, mode)
    held = _unsigned(source) if unsigned else source.numpy
    if source == "int4":
        held = np.dtype(np.int8)
    if target.is_float:
        return lambda values: _integer_to_float(_as(values, held), made, mode)
    return lambda values: _integer_to_integer(_as(values, held), made, mode)


def _as(values: Array, held: np.dtype[np.generic]) -> Array:
    if values.dtype == held:
        return values
    return values.view(held) if values.dtype.itemsize == held.itemsize and values.dtype.kind in "iu" else values.astype(held)


def is_plain(source: DType, target: DType, mode: str) -> bool:
    """Whether assigning a NumPy array of ``source`` to one of ``target`` gives the result of :func:`conversion`.

    A caller then needs no intermediate array.
    """
    if source.is_bool or target.is_bool or "int4" in (source, target) or source == target:
        return False
    if source.is_float and target.is_float:
        return mode == "rint" or target.bits > source.bits
    if source.is_integer and target.is_float:
        return mode == "rint" and target.bits >= 32
    return source.is_integer and target.bits > source.bits
