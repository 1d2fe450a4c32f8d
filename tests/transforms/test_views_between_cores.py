"""On a chip whose Vector cores write to L1, a part of a tile goes there directly if it consists of whole fractals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


def part_times_matrix(row: int, column: int) -> Any:
    """A part of a tile that the Vector cores compute, times a matrix."""
    @T.prim_func
    def main(X: T.Tensor((64, 80), "float16"), B: T.Tensor((64, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared((64, 80), "float16")
            a = T.alloc_shared((32, 64), "float16")
            b = T.alloc_shared((64, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(X, x)
            T.copy(B, b)
            for i, j in T.Parallel(64, 80):
                x[i, j] = x[i, j] * 2.0
            T.copy(x[row:row + 32, column:column + 64], a)
            T.gemm(a, b, c, initC=True)
            T.copy(c, C)

    return tilelang.compile(main, target="npuir", chip="Ascend950")


@pytest.mark.parametrize(("row", "column", "direct"), [
    (0, 0, True), (16, 16, True), (32, 0, True), (8, 0, False), (0, 8, False)])
def test_a_part_of_whole_fractals_is_copied_to_l1(row: int, column: int, direct: bool) -> None:
    kernel = part_times_matrix(row, column)
    assert ("a_workspace" not in kernel.mlir()) is direct
    rng = np.random.default_rng(0)
    x, b = (rng.integers(-4, 5, size).astype(np.float16) for size in ((64, 80), (64, 32)))
    c = np.zeros((32, 32), np.float32)
    kernel(x, b, c)
    np.testing.assert_array_equal(c, 2 * x[row:row + 32, column:column + 64].astype(np.float32) @ b.astype(np.float32))
