"""Estimates by how much rounding can change the results of a kernel, from runs of the interpreter that round at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import ml_dtypes
import numpy as np

from tilelang_npu.interpreter import POISON, RANDOM, WATCHED, Write

if TYPE_CHECKING:
    from tilelang_npu.runtime.arguments.tensors import Argument, Array

_Value = TypeVar("_Value")

_RUNS = 3
"""Executions with random rounding: discrete stochastic arithmetic takes three (Vignes 1993)."""
_RUNS_FOR_INTEGERS = 24
"""The largest number of executions that find out which integers depend on rounding."""
_FACTOR = 8.0
"""Factor on the spread of the runs, as they do not vary the order of sums."""
_UNITS = 4
"""Units in the last place that are always allowed: functions such as exp differ by up to two between libraries."""


def copied(values: Sequence[_Value]) -> list[_Value]:
    """Returns the values with each array replaced by a copy.

    Arrays that are the same memory become arrays of one copy, also in different shapes.
    """
    made: dict[object, Any] = {}

    def copy(array: Array) -> Any:
        place = array.__array_interface__["data"][0]
        if array.flags.c_contiguous:
            memory = place, array.nbytes
            if memory not in made:
                made[memory] = array.copy()
            return made[memory].reshape(-1).view(array.dtype).reshape(array.shape)
        elements = place, array.shape, array.strides, array.dtype
        if elements not in made:
            made[elements] = array.copy()
        return made[elements]

    return [copy(value) if isinstance(value, np.ndarray) else value for value in values]


def differs(got: Array, expected: Argument) -> Array:
    """Returns a Boolean mask of the elements that differ between two arrays. Two NaN count as equal, and so do zeros of both
    signs.
    """
    with np.errstate(invalid="ignore"):
        differing: Array = np.not_equal(got, expected) & ~(np.not_equal(got, got) & np.not_equal(expected, expected))
        return differing


def distance(got: Array, expected: Argument) -> Array:
    """Returns the absolute differences of the elements of two arrays, as float64.

    Two NaN, or two equal infinities, have the difference 0. Any other pair with a NaN or an infinity has the difference
    infinity.
    """
    a, b = got.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        found = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isfinite(found), found, np.inf))


def _at_random(run: Callable[[], list[Argument]], seed: int) -> list[Argument]:
    token = RANDOM.set(np.random.default_rng(seed))
    try:
        return run()
    finally:
        RANDOM.reset(token)


def spread(run: Callable[[], list[Argument]], wanted: Sequence[Argument]) -> list[Array | float]:
    """Returns by how much the results change in three executions in which each inexact operation rounds up or down at random.

    Args:
        run: executes the kernel with the interpreter and returns its arguments, which contain the results.
        wanted: the arguments after an execution with usual rounding.

    Returns:
        For each argument, the largest absolute change of each element; 0.0 for integer arrays and numbers.
    """
    found: list[Array | float] = [0.0 for _ in wanted]
    for seed in range(_RUNS):
        for position, (value, before) in enumerate(zip(_at_random(run, seed), wanted, strict=True)):
            if isinstance(value, np.ndarray) and value.dtype.kind not in "iub":
                found[position] = np.maximum(found[position], distance(value, before))
    return found


def undefined(run: Callable[[], list[Argument]], wanted: Sequence[Argument]) -> list[Array | bool]:
    """Returns masks of the result elements that change if uninitialised memory has other contents.

    Args:
        run: executes the kernel with the interpreter and returns its arguments, which contain the results.
        wanted: the arguments after an earlier execution.

    Returns:
        For each argument a Boolean mask; False for a number.
    """
    token = POISON.set((-3.5, 0x55))
    try:
        other = run()
    finally:
        POISON.reset(token)
    return [differs(value, before) if isinstance(value, np.ndarray) else False
            for value, before in zip(other, wanted, strict=True)]


def unexplained(run: Callable[[], list[Argument]], position: int, got: Array, expected: Argument, differing: Array
                ) -> Array:
    """Returns a Boolean mask of the integers whose difference rounding does not explain.

    An integer that is converted from a float near the middle between two integers can become either of them. So a difference is
    explained if the value lies between the smallest and the largest value of executions with random rounding.

    Args:
        run: executes the kernel with the interpreter and returns its arguments.
        position: the position of the integer array among the arguments.
        got: the array from the compiled kernel.
        expected: the array from the interpreter.
        differing: a Boolean mask of the elements that differ.
    """
    low: Argument = expected.copy()
    high, left = low, differing
    for seed in range(_RUNS, _RUNS + _RUNS_FOR_INTEGERS):
        values = _at_random(run, seed)[position]
        low, high = np.minimum(low, values), np.maximum(high, values)
        left = differing & ~((low <= got) & (got <= high))
        if not left.any() or (low == high).all():
            break
    return left


def allowance(expected: Argument, spreads: Array | float) -> Array:
    """Returns for each element of a float array the largest difference that rounding explains.

    Args:
        expected: the array from the interpreter.
        spreads: the change of each element by random rounding, from :func:`spread`. As this is a small sample, the root mean
            square of the element's row is used if it is larger.
    """
    info: Any = ml_dtypes.finfo  # has no types
    unit = float(info(expected.dtype if expected.dtype.itemsize < 4 else np.float32).eps)
    wide, spreads = np.abs(expected.astype(np.float64)), np.broadcast_to(spreads, np.shape(expected))
    if spreads.ndim and spreads.shape[-1] > 1:
        finite = np.where(np.isfinite(spreads), spreads, 0.0)
        spreads = np.maximum(spreads, np.sqrt(np.mean(finite * finite, axis=-1, keepdims=True)))
    least = _UNITS * float(info(expected.dtype).smallest_subnormal)
    return _FACTOR * spreads + _UNITS * unit * np.where(np.isfinite(wide), wide, 0.0) + least


def writer(run: Callable[[], list[Argument]], parameter: str, index: tuple[int, ...]) -> Write | None:
    """Returns the statement that writes an element of a tensor last when the interpreter executes a kernel.

    Args:
        run: executes the kernel with the interpreter.
        parameter: the name of the tensor's parameter.
        index: the index of the element.

    Returns:
        The statement, with its block and tile; None if no statement writes the element.
    """
    seen: list[Write] = []
    token = WATCHED.set((parameter, index, seen))
    try:
        run()
    finally:
        WATCHED.reset(token)
    return seen[-1] if seen else None
