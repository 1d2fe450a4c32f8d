"""Loops over all points of several axes at once, which the body takes apart by division: vector operations over those axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir", sanitize=True)
def scaled(planes: int, rows: int, columns: int, heads: int) -> Any:
    """Each element less a number of its plane, times one of its group of columns."""
    @T.prim_func
    def scaled(X: T.Tensor((planes, rows, columns), "float32"), P: T.Tensor((planes,), "float32"),
               S: T.Tensor((columns // heads,), "float32"), Y: T.Tensor((planes, rows, columns), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((planes, rows, columns), "float32")
            y = T.alloc_shared((planes, rows, columns), "float32")
            p = T.alloc_shared((planes,), "float32")
            s = T.alloc_shared((columns // heads,), "float32")
            T.copy(X, x)
            T.copy(P, p)
            T.copy(S, s)
            for k in T.Parallel(planes * rows * columns):
                plane, row, column = k // (rows * columns), k // columns % rows, k % columns
                y[plane, row, column] = (x[plane, row, column] - p[k // (rows * columns)]) * s[column // heads]
            T.copy(y, Y)

    return scaled


@pytest.mark.parametrize("shape", [(2, 3, 8, 2), (3, 5, 24, 8), (1, 7, 40, 5), (4, 2, 30, 3)])
def test_an_index_of_three_digits(shape: tuple[int, int, int, int]) -> None:
    planes, rows, columns, heads = shape
    rng = np.random.default_rng(0)
    x = rng.standard_normal((planes, rows, columns)).astype(np.float32)
    p, s = (rng.standard_normal(size).astype(np.float32) for size in (planes, columns // heads))
    kernel = scaled(*shape)
    expected = (x - p[:, None, None]) * np.repeat(s, heads)
    np.testing.assert_allclose(kernel(x, p, s), expected, rtol=1e-6)


def test_a_flat_loop_takes_as_long_as_one_over_both_axes() -> None:
    def kernel(flat: bool) -> Any:
        @tilelang.jit(out_idx=[-1], target="npuir")
        def made() -> Any:
            @T.prim_func
            def main(A: T.Tensor((48, 96), "float32"), B: T.Tensor((48, 96), "float32")):
                with T.Kernel(1, is_npu=True) as (_, _):
                    a = T.alloc_shared((48, 96), "float32")
                    T.copy(A, a)
                    if flat:
                        for k in T.Parallel(48 * 96):
                            a[k // 96, k % 96] = a[k // 96, k % 96] * 3
                    else:
                        for i, j in T.Parallel(48, 96):
                            a[i, j] = a[i, j] * 3
                    T.copy(a, B)

            return main

        return made()

    a = np.random.default_rng(0).standard_normal((48, 96)).astype(np.float32)
    flat, plain = kernel(flat=True), kernel(flat=False)
    np.testing.assert_array_equal(flat(a), plain(a))
    assert flat.last_launch.cycles == plain.last_launch.cycles


def test_an_axis_that_is_not_divided_evenly_stays_one() -> None:
    @tilelang.jit(out_idx=[-1], target="npuir", sanitize=True)
    def made() -> Any:
        @T.prim_func
        def main(A: T.Tensor((9, 16), "float32"), B: T.Tensor((9, 16), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _):
                a = T.alloc_shared((9, 16), "float32")
                T.copy(A, a)
                for k in T.Parallel(140):
                    a[k // 16, k % 16] = a[k // 16, k % 16] + k % 5
                T.copy(a, B)

        return main

    a = np.random.default_rng(0).standard_normal((9, 16)).astype(np.float32)
    expected = a.copy().ravel()
    expected[:140] += np.arange(140) % 5
    np.testing.assert_array_equal(made()(a), expected.reshape(9, 16))


@pytest.mark.parametrize("rows", [1, 9, 64])
def test_an_axis_of_one_point_that_is_not_asked_for_is_none(rows: int) -> None:
    """A column per row, as 0: it takes no longer than by its index."""
    def kernel(by_index: bool) -> Any:
        @tilelang.jit(out_idx=[-1], target="npuir", sanitize=True)
        def made() -> Any:
            @T.prim_func
            def main(A: T.Tensor((rows, 1), "float32"), B: T.Tensor((rows, 1), "float32")):
                with T.Kernel(1, is_npu=True) as (_, _):
                    a = T.alloc_shared((rows, 1), "float32")
                    T.copy(A, a)
                    for i, o in T.Parallel(rows, 1):
                        if by_index:
                            a[i, o] = T.exp(a[i, o]) + 1.0
                        else:
                            a[i, 0] = T.exp(a[i, 0]) + 1.0
                    T.copy(a, B)

            return main

        return made()

    a = np.random.default_rng(0).standard_normal((rows, 1)).astype(np.float32)
    zero, index = kernel(by_index=False), kernel(by_index=True)
    np.testing.assert_allclose(zero(a), np.exp(a) + 1, rtol=1e-6)
    np.testing.assert_array_equal(zero(a), index(a))
    assert zero.last_launch.cycles <= index.last_launch.cycles
