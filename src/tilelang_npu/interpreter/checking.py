"""How far two results of one kernel may be apart: what rounding explains, measured by rounding at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from tilelang_npu.errors import Location
from tilelang_npu.interpreter.values import RANDOM

_RUNS = 3
"""Executions with random rounding: discrete stochastic arithmetic takes three (Vignes 1993)."""
_FACTOR = 8.0
"""Allowed differences beside the spread of the runs: the order of sums is not among what they vary."""
_UNITS = 4
"""Units in the last place that are always allowed: functions such as exp differ by up to two between libraries."""

WATCHED: ContextVar[tuple[int, tuple[int, ...], list[tuple[Location | None, int | None]]] | None] = ContextVar(
    "tilelang_npu_watched_element", default=None)
"""An element of a tensor, by the position of its parameter, and the statements that write it."""


def copied(values: Sequence[Any]) -> list[Any]:
    """The values with copies of the arrays; arrays that are one memory stay one."""
    made: dict[int, Any] = {}
    return [made.setdefault(id(value), value.copy()) if isinstance(value, np.ndarray) else value for value in values]


def differs(got: Any, expected: Any) -> Any:
    """Which elements are not equal bit by bit; a NaN equals a NaN, and zeros of both signs are equal."""
    with np.errstate(invalid="ignore"):
        return (got != expected) & ~(_is_nan(got) & _is_nan(expected))


def _is_nan(values: Any) -> Any:
    return np.not_equal(values, values)


def distance(got: Any, expected: Any) -> Any:
    """How far apart two results are; infinite where one is a NaN or an infinity and the other is not."""
    a, b = got.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        found = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isfinite(found), found, np.inf))


def spread(run: Callable[[], list[Any]], wanted: Sequence[Any]) -> list[Any]:
    """By how much the results change where each inexact operation rounds up or down at random."""
    found: list[Any] = [0.0 for _ in wanted]
    for seed in range(_RUNS):
        token = RANDOM.set(np.random.default_rng(seed))
        try:
            values = run()
        finally:
            RANDOM.reset(token)
        for position, (value, before) in enumerate(zip(values, wanted, strict=True)):
            if isinstance(value, np.ndarray) and value.dtype.kind not in "iub":
                found[position] = np.maximum(found[position], distance(value, before))
    return found


def allowance(expected: Any, spreads: Any) -> Any:
    """The difference that rounding explains, for each element. One element's spread is a sample: those of its row count too."""
    wide = np.abs(expected.astype(np.float64))
    unit = float(np.finfo(np.float32).eps) if expected.dtype.itemsize >= 4 else _epsilon(expected.dtype)
    spreads = np.broadcast_to(spreads, expected.shape)
    if spreads.ndim and spreads.shape[-1] > 1:
        finite = np.where(np.isfinite(spreads), spreads, 0.0)
        root = np.sqrt(np.mean(finite * finite, axis=-1, keepdims=True))
        spreads = np.maximum(spreads, root)
    return _FACTOR * spreads + _UNITS * unit * np.where(np.isfinite(wide), wide, 0.0) + _tiny(expected.dtype)


def _epsilon(kind: Any) -> float:
    import ml_dtypes

    info: Any = ml_dtypes.finfo
    return float(info(kind).eps)


def _tiny(kind: Any) -> float:
    import ml_dtypes

    info: Any = ml_dtypes.finfo
    return _UNITS * float(info(kind).smallest_subnormal)


def writer(run: Callable[[], list[Any]], before: Sequence[Any], position: int, index: tuple[int, ...]
           ) -> tuple[Location | None, int | None]:
    """The statement that writes an element last, and its block."""
    seen: list[tuple[Location | None, int | None]] = []
    number = sum(isinstance(value, np.ndarray) for value in before[:position])
    token = WATCHED.set((number, index, seen))
    try:
        run()
    finally:
        WATCHED.reset(token)
    return seen[-1] if seen else (None, None)
