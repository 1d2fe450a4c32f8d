"""A part of an axis is there or it is not: by the set of its elements."""

from __future__ import annotations

import itertools

import pytest

from tilelang_npu.simulator.machine.axis_bounds import AxisBoundsError, check_product_size, check_read_start, check_slice


def test_a_part_is_there_where_all_of_its_elements_are() -> None:
    for start, size, extent in itertools.product(range(-3, 6), range(1, 6), range(1, 6)):
        if {*range(start, start + size)} <= {*range(extent)}:
            assert check_slice(start, start + size, extent, "axis 1", "x") == 0
        else:
            with pytest.raises(AxisBoundsError) as error:
                check_slice(start, start + size, extent, "axis 1", "x")
            what = f"starts at {start} on" if start < 0 else f"takes {start}..{start + size - 1} of"
            assert str(error.value) == f"{what} axis 1 of x, which has 0..{extent - 1}"


def test_a_negative_start_that_was_divided_as_an_unsigned_number() -> None:
    with pytest.raises(AxisBoundsError, match=r"^starts at -16 on the columns of a, which has 0\.\.95$"):
        check_slice((1 << 64) - 16, (1 << 64) + 16, 96, "the columns", "a")


def test_a_start_that_was_read_is_checked_alone() -> None:
    assert check_read_start(0, 1, 16, "axis 0", "X") == check_read_start(16, 16, 16, "axis 0", "X") == 0
    for start, reach in [(16, 17), (17, 17), (-1, 0)]:
        with pytest.raises(AxisBoundsError, match=rf"^starts at {start} on axis 0 of X, which has 0\.\.15$") as error:
            check_read_start(start, reach, 16, "axis 0", "X")
        assert "check the number that was read" in error.value.help


def test_sizes_of_products() -> None:
    for size, first, second in itertools.product(range(4), range(1, 4), range(1, 4)):
        if size <= first and size <= second:
            check_product_size("k", size, first, second, "elements along k")
        else:
            with pytest.raises(AxisBoundsError) as error:
                check_product_size("k", size, first, second, "elements along k")
            assert str(error.value) == f"multiplies k = {size}, but its operands have {first} and {second} elements along k"
