"""Index expressions of accesses in a ``T.Parallel``: their bounds against NumPy, and which accesses are rectangular regions."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue

from tilelang_npu.analysis.index_sums import Index, IndexSum, region_indices
from tilelang_npu.linear import Linear

UNKNOWN = Block(arg_types=[IndexType()]).args[0]


@pytest.mark.parametrize("extents", [(5, 7), (1, 4), (3, 1)])
@pytest.mark.parametrize("offset", [0, 11, -4])
@pytest.mark.parametrize("terms", [
    (), ((0, 1),), ((1, 3),), ((1, -1),), ((0, 8), (1, 2)), ((1, 4), (0, -3)), ((0, -2), (1, -1))])
def test_the_bounds_are_the_smallest_and_largest_value_in_the_iteration_space(
        terms: tuple[tuple[int, int], ...], offset: int, extents: tuple[int, int]) -> None:
    points = np.indices(extents).reshape(2, prod(extents))
    values = offset + sum((factor * points[axis] for axis, factor in terms), start=np.zeros(prod(extents), np.int64))
    assert IndexSum(terms, offset).bounds(extents) == (values.min(), values.max())


def test_an_offset_that_is_no_compile_time_integer_is_left_out_of_the_bounds() -> None:
    assert IndexSum(((0, 2), (1, -1)), UNKNOWN).bounds((4, 6)) == (-5, 6)


@pytest.mark.parametrize("offset", [3, UNKNOWN])
def test_only_a_variable_with_factor_one_is_an_index(offset: SSAValue | int) -> None:
    assert IndexSum((), offset).index == Index(None, offset)
    assert IndexSum(((1, 1),), offset).index == Index(1, offset)
    for terms in [((1, 2),), ((1, -1),), ((0, 1), (1, 1))]:
        assert IndexSum(terms, offset).index is None


@pytest.mark.parametrize("index", [Index(None, 5), Index(0, 0), Index(2, UNKNOWN)])
def test_an_index_is_equal_to_the_index_of_its_sum(index: Index) -> None:
    assert index.sum.index == index
    assert index.sum.terms == (() if index.axis is None else ((index.axis, 1),))


def test_sums_are_equal_whatever_is_known_of_their_offset() -> None:
    assert IndexSum(((0, 1),), UNKNOWN, Linear.of(UNKNOWN)) == IndexSum(((0, 1),), UNKNOWN)
    assert IndexSum(((0, 1),), 1) != IndexSum(((0, 1),), 2)
    assert IndexSum(((0, 1),), 1) != IndexSum(((0, 2),), 1)


ROW, COLUMN, CONSTANT = IndexSum(((0, 1),), 4), IndexSum(((1, 1),), 0), IndexSum((), 7)


@pytest.mark.parametrize("sums", [(), (ROW,), (COLUMN,), (ROW, COLUMN), (CONSTANT, COLUMN), (ROW, CONSTANT, COLUMN, CONSTANT)])
def test_variables_in_the_order_of_the_axes_access_a_region(sums: tuple[IndexSum, ...]) -> None:
    assert region_indices(sums) == tuple(each.index for each in sums)


@pytest.mark.parametrize("sums", [
    (COLUMN, ROW),  # a transposed access
    (ROW, ROW), (ROW, COLUMN, COLUMN),  # a diagonal
    (IndexSum(((0, 2),), 0), COLUMN),  # every second row
    (ROW, IndexSum(((0, 1), (1, 1)), 0)),  # a skewed access
    (ROW, None), (None,)])  # an index that is no sum
def test_other_accesses_are_no_region(sums: tuple[IndexSum | None, ...]) -> None:
    assert region_indices(sums) is None
