"""Temporaries of passes on the tile dialect: as large as their operand, whatever size that has at run time."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

BF16 = ml_dtypes.bfloat16


def widened(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32)


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_rows_that_run_time_counts(rng: np.random.Generator, rows: int) -> None:
    """bf16 is computed in f32 temporaries of the current rows; the following rows are not changed."""

    @T.prim_func
    def main(X: T.Tensor((7, 33), "bfloat16"), Y: T.Tensor((7, 33), "bfloat16"), n: T.int32):
        with T.Kernel(1) as cid:
            x = T.alloc_ub((7, 33), "bfloat16")
            y = T.alloc_ub((7, 33), "bfloat16")
            T.copy(X, x)
            T.copy(Y, y)
            T.vadd(x[0:n, :], y[0:n, :], y[0:n, :])
            T.copy(y, Y)

    x, y = (rng.standard_normal((7, 33)).astype(BF16) for _ in range(2))
    wanted = y.copy()
    wanted[:rows] = (widened(x) + widened(y)).astype(BF16)[:rows]
    tilelang.compile(main, target="npuir")(x, y, rows)
    np.testing.assert_array_equal(widened(y), widened(wanted))


@pytest.mark.parametrize("count", [1, 13, 33])
def test_a_line_and_a_row_of_run_time_length(rng: np.random.Generator, count: int) -> None:
    """The operand is a view with another unit axis of a slice: its size is bounded through both."""

    @T.prim_func
    def main(X: T.Tensor((33,), "bfloat16"), Y: T.Tensor((1, 33), "bfloat16"), n: T.int32):
        with T.Kernel(1) as cid:
            x = T.alloc_ub((33,), "bfloat16")
            y = T.alloc_ub((1, 33), "bfloat16")
            T.copy(X, x)
            T.copy(Y, y)
            T.vmul(x[0:n], x[0:n], y[0:1, 0:n])
            T.copy(y, Y)

    x, y = rng.standard_normal(33).astype(BF16), np.zeros((1, 33), BF16)
    wanted = widened(y)
    wanted[0, :count] = widened((widened(x) * widened(x)).astype(BF16))[:count]
    tilelang.compile(main, target="npuir")(x, y, count)
    np.testing.assert_array_equal(widened(y), wanted)


@pytest.mark.parametrize("count", [1, 5, 65])
def test_a_composite_of_a_slice(rng: np.random.Generator, count: int) -> None:
    """``silu`` needs a temporary: it has the slice's length."""

    @T.prim_func
    def main(X: T.Tensor((65,), "float32"), Y: T.Tensor((65,), "float32"), n: T.int32):
        with T.Kernel(1) as cid:
            x = T.alloc_ub((65,), "float32")
            y = T.alloc_ub((65,), "float32")
            T.copy(X, x)
            T.copy(Y, y)
            T.tile.silu(y[0:n], x[0:n])
            T.copy(y, Y)

    x, y = rng.standard_normal((2, 65)).astype(np.float32)
    wanted = np.concatenate([(x / (1 + np.exp(-x)))[:count], y[count:]])
    tilelang.compile(main, target="ascendc")(x, y, count)
    np.testing.assert_allclose(y, wanted, rtol=1e-6)


def test_a_reduction_of_a_slice(rng: np.random.Generator) -> None:
    """A half-precision sum of run-time length is accumulated in f32 and added to the destination."""

    @T.prim_func
    def main(X: T.Tensor((5, 40), "bfloat16"), Y: T.Tensor((5, 1), "bfloat16"), n: T.int32):
        with T.Kernel(1) as cid:
            x = T.alloc_ub((5, 40), "bfloat16")
            y = T.alloc_ub((5, 1), "bfloat16")
            T.copy(X, x)
            T.copy(Y, y)
            T.reduce_sum(x, y, dim=1, real_shape=[5, n], clear=False)
            T.copy(y, Y)

    compiled: Any = tilelang.compile(main, target="npuir")
    for count in (1, 17, 40):
        x, y = rng.integers(-8, 8, (5, 40)).astype(BF16), rng.integers(-8, 8, (5, 1)).astype(BF16)
        wanted = widened(y) + widened(x)[:, :count].sum(1, keepdims=True)
        compiled(x, y, count)
        np.testing.assert_array_equal(widened(y), widened(wanted.astype(BF16)))
