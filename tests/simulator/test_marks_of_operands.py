"""Marks of padding: by row and column for every layout, and their combination for several operands."""

from __future__ import annotations

import numpy as np
import pytest

from tilelang_npu.simulator.machine.op_records import Access
from tilelang_npu.simulator.sanitizer.padding_observer import CONSTANT, _combined
from tilelang_npu.simulator.sanitizer.shadow_memory import laid_out, matrix


@pytest.mark.parametrize(("memory", "shape", "rows", "columns"), [
    ("ub", (4, 8), 4, 8), ("ub", (4, 8, 1, 1), 4, 8), ("ub", (1, 4, 1, 8), 4, 8), ("cbuf", (4, 8), 4, 8),
    ("cbuf", (3, 2, 16, 8), 32, 24), ("cc", (2, 3, 16, 16), 48, 32)])
def test_marks_by_row_and_column_come_back_in_the_layout_of_the_operand(memory: str, shape: tuple[int, ...], rows: int,
                                                                      columns: int) -> None:
    access = Access(memory, 0, True, False, 4, 0, shape, (4,) * len(shape), "V", "src")
    values = np.arange(1, 1 + np.prod(shape), dtype=np.int32).reshape(shape)
    by_row = matrix(access, values)
    assert by_row is not None
    assert by_row.shape == (rows, columns)
    laid = laid_out(access, values, by_row)
    np.testing.assert_array_equal(laid, values)
    part = laid_out(access, values, by_row[:3, :5])
    assert part is not None
    back = matrix(access, part)
    assert back is not None
    np.testing.assert_array_equal(back[:3, :5], by_row[:3, :5])
    assert np.count_nonzero(back) == 15


def test_a_tensor_of_three_axes_is_no_matrix() -> None:
    access = Access("ub", 0, True, False, 4, 0, (2, 3, 4), (48, 16, 4), "V", "src")
    assert matrix(access, np.zeros((2, 3, 4))) is None
    assert laid_out(access, np.zeros((2, 3, 4)), np.ones((2, 3), np.int32)) is None


@pytest.mark.parametrize(("marks", "sources", "result", "chooses", "expected"), [
    ((0, 7), (3.0, 0.0), 3.0, False, 0),                 # a sum to which the padding adds nothing
    ((0, 7), (3.0, 1.0), 4.0, False, 7),
    ((0, 7), (np.inf, 0.0), np.nan, False, 7),           # inf * 0: no operand is the result
    ((0, 7), (np.nan, 1.0), np.nan, False, 0),           # a NaN of the data itself
    ((7, 0), (np.nan, 1.0), np.nan, False, 7),           # a NaN of the padding
    ((CONSTANT, 7), (5.0, 1.0), 5.0, True, 0),           # a maximum that chose the constant
    ((CONSTANT, 7), (5.0, 0.0), 5.0, False, 7),          # a sum of padding and a constant
    ((CONSTANT, CONSTANT), (5.0, 1.0), 6.0, False, CONSTANT),
    ((3, 7), (1.0, 1.0), 2.0, False, 7),
])
def test_marks_of_what_comes_of_two_operands(marks: tuple[int, int], sources: tuple[float, float], result: float, chooses: bool,
                                             expected: int) -> None:
    found = _combined([np.array([mark], np.int32) for mark in marks], [np.array([value]) for value in sources], chooses,
                      np.array([result]))
    assert found.tolist() == [expected]
