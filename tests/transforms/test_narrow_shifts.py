"""Elements of a byte that are shifted left in T.Parallel: as NumPy has them, and by the Vector core, not point by point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

ROWS, COLUMNS = 32, 96


@tilelang.jit(target="npuir")
def shifted(kind: str, by: int, columns: int = COLUMNS) -> Any:
    @T.prim_func
    def shifted(X: T.Tensor((ROWS, columns), kind), Y: T.Tensor((ROWS, columns), kind)):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((ROWS, columns), kind)
            y = T.alloc_shared((ROWS, columns), kind)
            T.copy(X, x)
            for i, j in T.Parallel(ROWS, columns):
                y[i, j] = x[i, j] << by
            T.copy(y, Y)

    return shifted


@tilelang.jit(target="npuir")
def unpacked(columns: int) -> Any:
    """Both halves of each byte as numbers of 8 bits, times 16."""
    @T.prim_func
    def unpacked(X: T.Tensor((ROWS, columns), "uint8"), Y: T.Tensor((ROWS, 2 * columns), "int8")):
        with T.Kernel(1, is_npu=True) as (_, _):
            packed = T.alloc_shared((ROWS, columns), "uint8")
            y = T.alloc_shared((ROWS, 2 * columns), "int8")
            T.copy(X, packed)
            halves = T.vbitcast(packed, "int8")
            for i, j in T.Parallel(ROWS, columns):
                y[i, j] = halves[i, j] << 4
                y[i, columns + j] = halves[i, j] & -16
            T.copy(y, Y)

    return unpacked


@pytest.mark.parametrize("by", [1, 7])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_a_byte_is_shifted_as_numpy_shifts_it(kind: str, by: int) -> None:
    x = np.arange(ROWS * COLUMNS).astype(kind).reshape(ROWS, COLUMNS)
    y = np.zeros_like(x)
    shifted(kind, by)(x, y)
    np.testing.assert_array_equal(y, x << by)


@pytest.mark.parametrize("columns", [32, 256])
def test_bytes_seen_as_others_are_shifted_by_the_vector_core(columns: int) -> None:
    """Point by point they take a hundred times longer: 4096 by 4096 of them did not end in ten minutes."""
    x = np.arange(ROWS * columns).astype(np.uint8).reshape(ROWS, columns)
    y = np.zeros((ROWS, 2 * columns), np.int8)
    kernel = unpacked(columns)
    kernel(x, y)
    signed = x.view(np.int8)
    np.testing.assert_array_equal(y, np.concatenate([signed << 4, signed & -16], axis=1))
    assert "point by point" not in str(kernel.explain())
    launch = kernel.last_launch
    assert launch is not None and launch.time_us < 10
