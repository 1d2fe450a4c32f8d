"""Estimates how far two results of one kernel may differ by rounding, from runs of the interpreter that round at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tilelang_npu.interpreter import POISON, RANDOM, WATCHED, Write

_RUNS = 3
"""Executions with random rounding: discrete stochastic arithmetic takes three (Vignes 1993)."""
_RUNS_FOR_INTEGERS = 24
"""The largest number of executions that find out which integers depend on rounding."""
_FACTOR = 8.0
"""Factor on the spread of the runs, as they do not vary the order of sums."""
_UNITS = 4
"""Units in the last place that are always allowed: functions such as exp differ by up to two between libraries."""


def copied(values: Sequence[object]) -> list[Any]:
    """Returns the values with copies of the arrays. Values that are the same array stay the same array."""
    made: dict[int, Any] = {}
    return [made.setdefault(id(value), value.copy()) if isinstance(value, np.ndarray) else value for value in values]


def differs(got: Any, expected: Any) -> Any:
    """Returns a mask of the elements that differ. A NaN equals a NaN, and zeros of both signs are equal."""
    with np.errstate(invalid="ignore"):
        return (got != expected) & ~(np.not_equal(got, got) & np.not_equal(expected, expected))


def distance(got: Any, expected: Any) -> Any:
    """Returns the absolute differences; infinity where one value is a NaN or an infinity and the other is not."""
    a, b = got.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        found = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isfinite(found), found, np.inf))


def _at_random(run: Callable[[], list[object]], seed: int) -> list[Any]:
    token = RANDOM.set(np.random.default_rng(seed))
    try:
        return run()
    finally:
        RANDOM.reset(token)


def spread(run: Callable[[], list[object]], wanted: Sequence[object]) -> list[Any]:
    """Returns how far the results change if each inexact operation rounds up or down at random."""
    found: list[Any] = [0.0 for _ in wanted]
    for seed in range(_RUNS):
        for position, (value, before) in enumerate(zip(_at_random(run, seed), wanted, strict=True)):
            if isinstance(value, np.ndarray) and value.dtype.kind not in "iub":
                found[position] = np.maximum(found[position], distance(value, before))
    return found


def undefined(run: Callable[[], list[object]], wanted: Sequence[object]) -> list[Any]:
    """Returns masks of the result elements that change if uninitialised memory has other contents."""
    token = POISON.set((-3.5, 0x55))
    try:
        other = run()
    finally:
        POISON.reset(token)
    return [differs(value, before) if isinstance(value, np.ndarray) else False
            for value, before in zip(other, wanted, strict=True)]


def unexplained(run: Callable[[], list[Any]], position: int, got: Any, expected: Any, differing: Any) -> Any:
    """Returns a mask of the differing integers that no execution with random rounding gives. An integer that is rounded from a
    float near the middle between two integers may be either of them."""
    low, high, left = expected.copy(), expected.copy(), differing
    for seed in range(_RUNS, _RUNS + _RUNS_FOR_INTEGERS):
        values = _at_random(run, seed)[position]
        low, high = np.minimum(low, values), np.maximum(high, values)
        left = differing & ~((low <= got) & (got <= high))
        if not left.any() or (low == high).all():
            break
    return left


def allowance(expected: Any, spreads: Any) -> Any:
    """Returns the difference that rounding explains, for each element. An element's spread is a small sample, so the mean
    square of its row counts, too."""
    info: Any = ml_dtypes.finfo
    unit = float(info(expected.dtype if expected.dtype.itemsize < 4 else np.float32).eps)
    wide, spreads = np.abs(expected.astype(np.float64)), np.broadcast_to(spreads, expected.shape)
    if spreads.ndim and spreads.shape[-1] > 1:
        finite = np.where(np.isfinite(spreads), spreads, 0.0)
        spreads = np.maximum(spreads, np.sqrt(np.mean(finite * finite, axis=-1, keepdims=True)))
    least = _UNITS * float(info(expected.dtype).smallest_subnormal)
    return _FACTOR * spreads + _UNITS * unit * np.where(np.isfinite(wide), wide, 0.0) + least


def writer(run: Callable[[], list[object]], parameter: str, index: tuple[int, ...]) -> Write | None:
    """Returns the statement that writes an element of a tensor last; None if none does."""
    seen: list[Write] = []
    token = WATCHED.set((parameter, index, seen))
    try:
        run()
    finally:
        WATCHED.reset(token)
    return seen[-1] if seen else None
