"""An integer that is linear in the iterations of a loop is that of each iteration for which a traced one stands."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelang_npu.simulator.machine.loop_integers import LoopInt, SampledLoop, made, viewed

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "mask": lambda a, b: a & (1 << b % 7) - 1 if b % 7 else a & 3, "&": operator.and_, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "if": lambda a, b: a if a < b else b,
    "range": lambda a, b: len(range(a, b, 7)), "or": lambda a, b: a or b, "from": lambda a, b: b - a}
steps = st.lists(st.tuples(st.sampled_from(sorted(OPERATORS)), st.integers(0, 4), st.integers(0, 4), st.integers(-70, 70),
                           st.booleans()), min_size=1, max_size=8)


def computed(numbers: list[Any], program: list[tuple[str, int, int, int, bool]]) -> list[Any]:
    """The values of a chain of operations, each on two of those before or on one and a literal."""
    values = list(numbers)
    for name, one, other, literal, both in program:
        integers = [value for value in values if not isinstance(value, bool)]
        first, second = integers[one % len(integers)], integers[other % len(integers)] if both else literal
        if name in ("//", "%"):
            second = abs(literal) + 1
        if name in ("&", "mask"):
            second = abs(literal)
        values.append(OPERATORS[name](first, second))
    return values


def at(value: Any, later: dict[SampledLoop, int]) -> int | bool:
    """The value of an integer some iterations later."""
    if not isinstance(value, LoopInt):
        return int(value)
    found = value.base + sum(slope * later.get(loop, 0) for loop, slope in value.slopes.items())
    assert found == int(found)
    return int(found)


@settings(max_examples=400, deadline=None)
@given(program=steps, outer=st.integers(0, 5), inner=st.integers(0, 30),
       counts=st.tuples(st.integers(1, 6), st.integers(1, 40)), factors=st.tuples(st.integers(-3, 3), st.integers(-3, 3)),
       needs_quotients=st.booleans())
def test_a_traced_iteration_stands_for_others(program: list[tuple[str, int, int, int, bool]], outer: int, inner: int,
                                              counts: tuple[int, int], factors: tuple[int, int], *,
                                              needs_quotients: bool) -> None:
    loops = [SampledLoop(count, depth) for depth, count in enumerate(counts)]
    indices = [outer % counts[0], inner % counts[1]]
    for loop, index in zip(loops, indices, strict=True):
        loop.index, loop.needs_quotients = index, needs_quotients
    start = [made(factor * index + 5, {loop: factor}) for factor, index, loop in zip(factors, indices, loops, strict=True)]
    found = computed(start, program)
    for first in range(indices[0], loops[0].limit, loops[0].period):
        for second in range(indices[1], loops[1].limit, loops[1].period):
            plain = computed([factors[0] * first + 5, factors[1] * second + 5], program)
            later = {loops[0]: first - indices[0], loops[1]: second - indices[1]}
            assert [at(value, later) for value in found] == list(map(int, plain))


def test_a_comparison_limits_and_a_remainder_repeats() -> None:
    loop = SampledLoop(100, 0)
    loop.index = 4
    number = LoopInt(4, {loop: 1})
    assert number % 2 == 0
    assert (loop.period, loop.limit) == (2, 100)
    assert number < 10
    assert loop.limit == 10
    assert at(number // 3, {loop: 6}) == 3
    assert loop.period == 6


def test_a_quotient_that_an_iteration_needed_is_constant_up_to_the_limit_from_then_on() -> None:
    loop = SampledLoop(680, 0)
    number = LoopInt(5, {loop: 3})
    assert len(range(number // 64)) == 0  # differs from period to period, so the iteration represents no other
    assert (loop.period, loop.limit) == (64, 1)
    loop.index, loop.limit, loop.period = 1, loop.count, 1
    number = LoopInt(8, {loop: 3})
    assert (number // 64, number % 2) == (0, 0)
    assert (loop.period, loop.limit) == (2, 20)
    loop.index, loop.limit, loop.period = 18, loop.count, 1
    assert LoopInt(59, {loop: 3}) % 64 == 59  # constant for two iterations only
    assert (loop.period, loop.limit) == (64, loop.count)


def test_a_number_that_must_be_known_is_that_of_the_traced_iteration() -> None:
    loop = SampledLoop(100, 0)
    assert len(range(LoopInt(7, {loop: 3}))) == 7
    assert loop.limit == 1


@pytest.mark.parametrize(("base", "limit"), [(0, 8), (16, 1)])
def test_views_are_in_bounds_in_all_iterations(base: int, limit: int) -> None:
    loop = SampledLoop(8, 0)
    memory = np.zeros(64, np.uint8)
    view = viewed((8,), np.dtype(np.uint8), memory, LoopInt(base, {loop: 8}), (1,))
    assert view.dtype == np.uint8
    assert loop.limit == limit
    with pytest.raises((TypeError, ValueError)):
        viewed((8,), np.dtype(np.uint8), memory, LoopInt(60, {loop: 8}), (1,))
