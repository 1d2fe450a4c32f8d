"""Rows in UB that are no whole blocks: in buffers that are also seen flat, and in those whose address the user fixed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


def adjacent(rows: int, columns: int, dtype: str) -> Any:
    """Two adjacent buffers: the first is loaded and doubled, which must not change the second."""
    nbytes = -(-rows * columns * tilelang.DataType(dtype).bits // 8 // 32) * 32

    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype), C: T.Tensor((64,), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((rows, columns), dtype)
            c = T.alloc_ub((64,), dtype)
            T.annotate_address({a: 0, c: nbytes})
            T.copy(C, c)
            T.copy(A, a)
            T.tile.add(a, a, a)
            if vid == 0:
                T.copy(a, B)
                T.copy(c, C)

    return tilelang.compile(main, target="ascendc", pass_configs={"tl.ascend_auto_sync": True})


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("rows", "columns"), [(64, 1), (4, 6), (16, 3), (5, 7), (4, 16)])
def test_the_next_address_is_free(rows: int, columns: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, c = rng.random((rows, columns)).astype(dtype), rng.random(64).astype(dtype)
    b, before = np.zeros_like(a), c.copy()
    adjacent(rows, columns, dtype)(a, b, c)
    np.testing.assert_array_equal(b, a + a)
    np.testing.assert_array_equal(c, before)


def flat(rows: int, columns: int, left: int, dtype: str, stacked: bool) -> Any:
    """Rows of a wider tensor, taken as flat memory: doubled, the first few once more, and stored as rows again."""
    count = rows * columns

    @T.prim_func
    def main(A: T.Tensor((rows + 3, columns + 5), dtype), B: T.Tensor((rows + 3, columns + 5), dtype),
             F: T.Tensor((count,), dtype), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            tiles = T.alloc_ub((2, rows, columns), dtype)
            tile = T.alloc_ub((rows, columns), dtype)
            line = T.alloc_ub((count,), dtype)
            if stacked:
                T.copy(A[left:left + rows, left:left + columns], tiles[n % 2, :, :])
                T.tile.add(line, tiles[n % 2, :, :], tiles[n % 2, :, :])
            else:
                T.copy(A[left, left], tile)
                T.tile.add(line, tile, tile)
            T.copy(line, F)
            again = T.reshape(line, (rows, columns))
            T.tile.clamp_max(line, line, 3.0, count - 2)
            if vid == 0:
                T.copy(again, B[left, left])

    return tilelang.compile(main, target="ascendc", pass_configs={"tl.ascend_auto_sync": True})


@pytest.mark.parametrize("stacked", [False, True], ids=["alone", "stacked"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("rows", "columns", "left"), [(8, 6, 1), (5, 7, 2), (16, 1, 1), (3, 16, 1), (6, 4, 3), (4, 24, 4)])
def test_rows_that_are_seen_flat(rows: int, columns: int, left: int, dtype: str, stacked: bool) -> None:
    rng = np.random.default_rng(1)
    a = rng.random((rows + 3, columns + 5)).astype(dtype) * np.asarray(4, dtype)
    b, f = np.full_like(a, 9), np.zeros(rows * columns, dtype)
    flat(rows, columns, left, dtype, stacked)(a, b, f, 3)
    part = np.zeros((rows, columns), dtype)
    inside = a[left:left + rows, left:left + columns]
    part[:inside.shape[0], :inside.shape[1]] = inside
    doubled = (part + part).ravel()
    np.testing.assert_array_equal(f, doubled)
    doubled[:-2] = np.minimum(doubled[:-2], 3)
    expected = np.full_like(a, 9)
    expected[left:left + rows, left:left + columns] = doubled.reshape(rows, columns)[:inside.shape[0], :inside.shape[1]]
    np.testing.assert_array_equal(b, expected)
