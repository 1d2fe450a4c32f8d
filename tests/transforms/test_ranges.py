"""Bounds of integers, against all values of small ranges."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilelang_npu.transforms.ir import ranges
from tilelang_npu.transforms.ir.ranges import Range

SMALL = st.tuples(st.integers(-6, 6), st.integers(0, 5)).map(lambda pair: Range(pair[0], pair[0] + pair[1]))
OPERATIONS = {
    "_add": lambda a, b: a + b,
    "_subtract": lambda a, b: a - b,
    "_multiply": lambda a, b: a * b,
    "_floordiv": lambda a, b: a // b,
    "_truncdiv": lambda a, b: int(a / b),
    "_ceildiv": lambda a, b: -(-a // b),
    "_remainder": lambda a, b: a - b * int(a / b),
    "_minimum": min,
    "_maximum": max,
}


@pytest.mark.parametrize("name", OPERATIONS)
@given(a=SMALL, b=SMALL)
def test_every_value_is_within(name: str, a: Range, b: Range) -> None:
    found = getattr(ranges, name)(a, b)
    for x, y in product(range(int(a.low), int(a.high) + 1), range(int(b.low), int(b.high) + 1)):
        if y == 0 and name in ("_floordiv", "_truncdiv", "_ceildiv", "_remainder"):
            continue
        assert found.low <= OPERATIONS[name](x, y) <= found.high


@pytest.mark.parametrize("name", ["_add", "_subtract", "_multiply", "_minimum", "_maximum"])
@given(a=SMALL, b=SMALL)
def test_the_bounds_are_reached(name: str, a: Range, b: Range) -> None:
    found = getattr(ranges, name)(a, b)
    values = [OPERATIONS[name](x, y)
              for x, y in product(range(int(a.low), int(a.high) + 1), range(int(b.low), int(b.high) + 1))]
    assert (found.low, found.high) == (min(values), max(values))


def test_infinities_stay_bounds() -> None:
    unknown, symbol = Range(), Range(1, math.inf)
    assert ranges._ceildiv(symbol, Range(64, 64)) == Range(1, math.inf)
    assert ranges._multiply(symbol, Range(0, 0)) == Range(0, 0)
    assert ranges._remainder(unknown, Range(8, 8)) == Range(-7, 7)
    assert unknown.constant is None
    assert Range(3, 3).constant == 3
