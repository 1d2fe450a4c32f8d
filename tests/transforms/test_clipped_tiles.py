"""Tiles that a tensor does not fill, whatever the type: the rest is zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

ROWS, TILE, COLUMNS = 21, 16, 32


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32"])
def test_rows_that_a_tensor_does_not_have_are_zero(dtype: str) -> None:
    def factory() -> Any:
        @T.prim_func
        def main(X: T.Tensor((ROWS, COLUMNS), dtype), Y: T.Tensor((2 * TILE, COLUMNS), dtype)):
            with T.Kernel(2, is_npu=True) as (block, _):
                x = T.alloc_shared((TILE, COLUMNS), dtype)
                T.copy(X[block * TILE, 0], x)
                T.copy(x, Y[block * TILE, 0])

        return main

    x = np.random.default_rng(0).integers(1, 100, (ROWS, COLUMNS)).astype(dtype)
    y = tilelang.compile(factory(), out_idx=[-1], target="npuir")(x)
    np.testing.assert_array_equal(y[:ROWS], x)
    np.testing.assert_array_equal(y[ROWS:], 0)
