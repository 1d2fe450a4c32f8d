"""The two parts of a dynamic index list are merged in order."""

from __future__ import annotations

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, i64
from xdsl.ir import SSAValue

from tilelang_npu.dialects.ir.index_lists import mixed_values


def values(count: int) -> list[SSAValue]:
    return [test.TestOp(result_types=[IndexType()]).results[0] for _ in range(count)]


@pytest.mark.parametrize("static", [[], [3], [DYNAMIC_INDEX], [0, DYNAMIC_INDEX, -5, DYNAMIC_INDEX], [DYNAMIC_INDEX, 7]])
def test_constants_are_ints_and_other_positions_have_the_values_in_order(static: list[int]) -> None:
    dynamic = values(static.count(DYNAMIC_INDEX))
    found = mixed_values(DenseArrayBase.from_list(i64, static), dynamic)
    left = iter(dynamic)
    assert len(found) == len(static)
    for part, number in zip(found, static, strict=True):
        if number == DYNAMIC_INDEX:
            assert part is next(left)
        else:
            assert type(part) is int
            assert part == number
    assert next(left, None) is None


def test_a_list_with_too_few_values_is_no_silent_result() -> None:
    with pytest.raises((StopIteration, RuntimeError)):
        mixed_values(DenseArrayBase.from_list(i64, [DYNAMIC_INDEX, DYNAMIC_INDEX]), values(1))
