"""Copies between layouts: rows, fractals and their transposes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilelang_npu.simulator.machine.datapath import transpose_fractals


def in_fractals(matrix: Any, width: int) -> Any:
    """A matrix in fractals of 16 rows and ``width`` columns: [column blocks, row blocks, 16, width]."""
    rows, columns = matrix.shape
    return np.ascontiguousarray(matrix.reshape(rows // 16, 16, columns // width, width).transpose(2, 0, 1, 3))


@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (48, 16), (16, 64), (32, 48)])
def test_transposed_fractals(rows: int, columns: int) -> None:
    matrix = np.arange(rows * columns, dtype=np.float16).reshape(rows, columns)
    target = np.full((rows // 16, columns // 16, 16, 16), -1, np.float16)
    transpose_fractals(target, in_fractals(matrix, 16))
    np.testing.assert_array_equal(target, in_fractals(matrix.T, 16))


def test_what_exceeds_the_matrix_is_zero() -> None:
    matrix = np.arange(16 * 32, dtype=np.float16).reshape(16, 32)
    target = np.full((2, 3, 16, 16), -1, np.float16)
    transpose_fractals(target, in_fractals(matrix, 16))
    wanted = np.zeros((48, 32), np.float16)
    wanted[:32, :16] = matrix.T
    np.testing.assert_array_equal(target, in_fractals(wanted, 16))
