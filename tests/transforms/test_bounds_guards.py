"""``if row < M and column < N`` around a store to a tensor, as in kernels for GPUs: it is redundant, since copies are
clipped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

ROWS, COLUMNS = 8, 24


def kernel(guard: str, rows: Any, columns: Any) -> Any:
    """A kernel with a store under one of the guards."""
    @tilelang.jit(target="npuir", sanitize=True)
    def made() -> Any:
        m = T.symbolic("m") if rows is None else rows
        n = columns

        @T.prim_func
        def main(A: T.Tensor((m, n), "float32"), C: T.Tensor((m, n), "float32")):
            with T.Kernel(T.ceildiv(n, COLUMNS), T.ceildiv(m, ROWS), threads=128) as (bx, by):
                for i, j in T.Parallel(ROWS, COLUMNS):
                    if guard == "both":
                        if by * ROWS + i < m and bx * COLUMNS + j < n:
                            C[by * ROWS + i, bx * COLUMNS + j] = A[by * ROWS + i, bx * COLUMNS + j] * 2 + 1
                    elif guard == "turned":
                        if m > by * ROWS + i and bx * COLUMNS + j <= n - 1 and m - 1 >= by * ROWS + i:
                            C[by * ROWS + i, bx * COLUMNS + j] = A[by * ROWS + i, bx * COLUMNS + j] * 2 + 1
                    elif guard == "nested":
                        if by * ROWS + i < m:  # noqa: SIM102 -- as its author has it
                            if bx * COLUMNS + j < n:
                                C[by * ROWS + i, bx * COLUMNS + j] = A[by * ROWS + i, bx * COLUMNS + j] * 2 + 1
                    elif guard == "shorter":
                        if by * ROWS + i < m and bx * COLUMNS + j < n - 3:
                            C[by * ROWS + i, bx * COLUMNS + j] = A[by * ROWS + i, bx * COLUMNS + j] * 2 + 1
                    else:
                        if by * ROWS + i < m and bx * COLUMNS + j < n and A[by * ROWS + i, bx * COLUMNS + j] > 0:
                            C[by * ROWS + i, bx * COLUMNS + j] = A[by * ROWS + i, bx * COLUMNS + j] * 2 + 1

        return main

    return made()


@pytest.mark.parametrize(("rows", "columns"), [(16, 48), (13, 31), (3, 5), (None, 31)])
@pytest.mark.parametrize("guard", ["both", "turned", "nested", "shorter", "by value"])
def test_what_a_guard_lets_through_is_written_and_nothing_else(guard: str, rows: int | None, columns: int) -> None:
    a = np.random.default_rng(0).standard_normal((rows or 21, columns)).astype(np.float32)
    c = np.full_like(a, -7)
    made = kernel(guard, rows, columns)
    made(a, c)
    let = np.ones_like(a, bool)
    if guard == "shorter":
        let[:, -3:] = False
    elif guard == "by value":
        let = a > 0
    np.testing.assert_array_equal(c, np.where(let, a * 2 + 1, -7))


@pytest.mark.parametrize("rows", [13, None])
@pytest.mark.parametrize("guard", ["both", "turned", "nested"])
def test_a_guard_of_the_tensor_s_end_costs_nothing(guard: str, rows: int | None) -> None:
    made = kernel(guard, rows, 31)
    assert "T.Parallel 8x24  vector: mul, add" in str(made.explain())
