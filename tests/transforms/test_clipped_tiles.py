"""Tiles that a tensor does not fill, whatever the type: the rest is zero."""

from __future__ import annotations

import re
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


def test_a_tile_wholly_beyond_its_tensor_lies_at_its_start() -> None:
    """MLIR refuses a view with a constant offset out of range, also if it has no elements."""
    def factory() -> Any:
        @T.prim_func
        def main(X: T.Tensor((TILE, COLUMNS), "float32"), Y: T.Tensor((3 * TILE, COLUMNS), "float32")):
            with T.Kernel(1, is_npu=True) as (block, _):
                x = T.alloc_shared((TILE, COLUMNS), "float32")
                for part in T.unroll(3):
                    T.copy(X[part * TILE, 0], x)
                    T.copy(x, Y[part * TILE, 0])

        return main

    x = np.random.default_rng(0).standard_normal((TILE, COLUMNS)).astype(np.float32)
    kernel = tilelang.compile(factory(), out_idx=[-1], target="npuir")
    y = kernel(x)
    np.testing.assert_array_equal(y[:TILE], x)
    np.testing.assert_array_equal(y[TILE:], 0)
    starts = re.findall(r"memref\.subview %X\[(\d+), \d+\] \[(\d+), ", kernel.mlir("hivm-auto"))
    assert [start for start, _ in starts] == ["0"] * len(starts)
    assert ("0", "0") in starts


@pytest.mark.parametrize(("limit", "rows", "clipped"), [(3, 48, False), (4, 48, True), (3, 47, True), (2, 40, False)])
def test_a_tile_that_a_branch_keeps_inside_is_not_clipped(limit: int, rows: int, clipped: bool) -> None:
    """``if t + 1 < n`` says of the load of the next tile that it is whole, if n tiles are."""
    def factory(rows: int) -> Any:
        @T.prim_func
        def main(X: T.Tensor((rows, COLUMNS), "float32"), Y: T.Tensor((5 * TILE, COLUMNS), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _):
                x = T.alloc_shared((TILE, COLUMNS), "float32")
                T.vbrc(7.0, x)
                for t in T.serial(5):
                    if t >= 0 and t + 1 < limit:
                        T.copy(X[(t + 1) * TILE, 0], x)
                    T.copy(x, Y[t * TILE, 0])

        return main

    x = np.random.default_rng(0).uniform(-1, 1, (rows, COLUMNS)).astype(np.float32)
    kernel = tilelang.compile(factory(rows), out_idx=[-1], target="npuir")
    padded = np.zeros(((limit + 1) * TILE, COLUMNS), np.float32)
    padded[:rows] = x[:(limit + 1) * TILE]
    loaded = [padded[(t + 1) * TILE:(t + 2) * TILE] for t in range(limit - 1)]
    np.testing.assert_array_equal(kernel(x), np.concatenate([*loaded, *[loaded[-1]] * (6 - limit)]))
    assert ("minsi" in kernel.mlir()) == clipped
