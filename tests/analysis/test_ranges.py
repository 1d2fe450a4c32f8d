"""Bounds of values of the IR, compared with the results of the ops for all values within the bounds of their operands."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Block, Operation

from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import Interval, Linear

WORD = 1 << 64


def toward_zero(x: int, y: int) -> int:
    """The quotient rounded toward zero."""
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def unsigned(meaning: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """Returns an op that reads its operands as unsigned, and whose result is read as signed."""
    def computed(x: int, y: int) -> int:
        found = meaning(x % WORD, y % WORD)
        return found - WORD if found >= WORD // 2 else found

    return computed


DIVIDES = {"floordivsi", "divsi", "divui", "ceildivsi", "ceildivui", "remsi", "remui"}
OPS: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda x, y: x + y,
    arith.SubiOp: lambda x, y: x - y,
    arith.MuliOp: lambda x, y: x * y,
    arith.FloorDivSIOp: lambda x, y: x // y,
    arith.DivSIOp: toward_zero,
    arith.DivUIOp: unsigned(lambda x, y: x // y),
    arith.CeilDivSIOp: lambda x, y: -(-x // y),
    arith.CeilDivUIOp: unsigned(lambda x, y: -(-x // y)),
    arith.RemSIOp: lambda x, y: x - y * toward_zero(x, y),
    arith.RemUIOp: unsigned(lambda x, y: x % y),
    arith.MinSIOp: min,
    arith.MinUIOp: unsigned(min),
    arith.MaxSIOp: max,
    arith.MaxUIOp: unsigned(max),
}
SMALL = st.builds(lambda low, more: Interval(low, low + more), st.integers(-6, 6), st.integers(0, 5))


@pytest.mark.parametrize("kind", OPS, ids=lambda kind: str(kind.name))
@given(a=SMALL, b=SMALL, open_=st.sampled_from(["", "a", "b", "ab"]))
def test_what_an_op_computes_is_within(kind: type[Operation], a: Interval, b: Interval, open_: str) -> None:
    """The larger of -1 and 3, read as unsigned, is -1; the bounds were those of 3."""
    block, ranges = Block(arg_types=[IndexType()] * 2), Ranges()
    for argument, known, name in zip(block.args, (a, b), "ab", strict=True):
        ranges.assume(argument, Interval(known.low, inf) if name in open_ else known)
    made = kind(*block.args)  # type: ignore[call-arg]  # as each of them is made
    found = ranges.of(made.results[0])
    for x, y in product(a.numbers, b.numbers):
        if y or kind.name.removeprefix("arith.") not in DIVIDES:
            assert found.low <= OPS[kind](x, y) <= found.high


@pytest.mark.parametrize("kind", [arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.MinSIOp, arith.MaxSIOp],
                         ids=lambda kind: str(kind.name))
@given(a=SMALL, b=SMALL)
def test_the_bounds_are_reached(kind: type[Operation], a: Interval, b: Interval) -> None:
    block, ranges = Block(arg_types=[IndexType()] * 2), Ranges()
    for argument, known in zip(block.args, (a, b), strict=True):
        ranges.assume(argument, known)
    values = [OPS[kind](x, y) for x, y in product(a.numbers, b.numbers)]
    made = kind(*block.args)  # type: ignore[call-arg]  # as each of them is made
    assert ranges.of(made.results[0]) == Interval(min(values), max(values))


def test_a_truth_value_that_is_extended_is_one() -> None:
    """``true`` is -1 among signed integers of one bit; extended as unsigned it is 1."""
    true = arith.ConstantOp(IntegerAttr(-1, IntegerType(1)))
    assert 1 in Ranges().of(arith.ExtUIOp(true.result, IntegerType(32)).result).meet(Interval(0, 9)).numbers


def test_an_index_is_read_as_a_sum() -> None:
    block = Block(arg_types=[IndexType()] * 2)
    x, y = block.args

    def number(value: int) -> Operation:
        return arith.ConstantOp(IntegerAttr(value, IndexType()))

    eight, three = number(8), number(3)
    scaled = arith.MuliOp(eight, arith.AddiOp(x, three))
    whole = arith.SubiOp(scaled, arith.AddiOp(y, x))
    assert affine(whole.result) == 7 * Linear.of(x) - Linear.of(y) + 24
    quotient = arith.DivUIOp(x, eight)
    assert affine(arith.AddiOp(quotient, quotient).result) == 2 * Linear.of(quotient.result)
    ranges = Ranges()
    ranges.assume(y, Interval.at(5))
    product_ = arith.MuliOp(x, y).result
    assert affine(product_, ranges.constant) == 5 * Linear.of(x)
    assert affine(product_) == Linear.of(product_)
