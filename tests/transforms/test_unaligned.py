"""``T.Parallel`` over columns and rows that begin at no block of UB: right values, and nothing that the sanitizer finds."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

SHAPES = [(1, 5), (3, 10), (8, 16), (5, 70), (16, 33)]


def compiled(func: Any) -> Any:
    return tilelang.compile(func, target="npuir", sanitize=True)


def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    return np.random.default_rng(0).integers(0, 9, shape).astype(kind)


def loops(kernel: Any) -> str:
    return "\n".join(kernel.explain().sections["loops"])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_a_shift(rows: int, columns: int, dtype: str) -> None:
    @T.prim_func
    def main(X: T.Tensor((rows, columns), dtype), Y: T.Tensor((rows, columns), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((rows, columns), dtype)
            y = T.alloc_shared((rows, columns), dtype)
            T.copy(X, x)
            T.copy(Y, y)
            for i, j in T.Parallel(rows, columns - 1):
                y[i, j] = x[i, j + 1]
            T.copy(y, Y)

    x, y = drawn((rows, columns), dtype), drawn((rows, columns), dtype)[::-1].copy()
    expected = y.copy()
    expected[:, :-1] = x[:, 1:]
    compiled(main)(x, y)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8"])
@pytest.mark.parametrize("first", [1, 2, 8])
@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_what_is_written_leaves_the_rest(rows: int, columns: int, first: int, dtype: str) -> None:
    wide = columns + first + 3

    @T.prim_func
    def main(X: T.Tensor((rows, columns), dtype), Y: T.Tensor((rows, wide), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((rows, columns), dtype)
            y = T.alloc_shared((rows, wide), dtype)
            T.copy(X, x)
            T.copy(Y, y)
            for i, j in T.Parallel(rows, columns):
                y[i, j + first] = x[i, j] + x[i, j]
            T.copy(y, Y)

    x, y = drawn((rows, columns), dtype), drawn((rows, wide), dtype)
    expected = y.copy()
    expected[:, first:first + columns] = x + x
    compiled(main)(x, y)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (9, 21), (16, 64)])
def test_five_points(rows: int, columns: int, dtype: str) -> None:
    @T.prim_func
    def main(X: T.Tensor((rows, columns), dtype), Y: T.Tensor((rows, columns), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((rows, columns), dtype)
            y = T.alloc_shared((rows, columns), dtype)
            T.copy(X, x)
            T.copy(X, y)
            for i, j in T.Parallel(rows - 2, columns - 2):
                y[i + 1, j + 1] = x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2] - x[i + 1, j + 1]
            T.copy(y, Y)

    x, y = drawn((rows, columns), dtype), drawn((rows, columns), dtype)
    expected = x.copy()
    expected[1:-1, 1:-1] = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - x[1:-1, 1:-1]
    compiled(main)(x, y)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_columns(rows: int, columns: int, dtype: str) -> None:
    """One column to another, and one that is repeated along the rows."""
    @T.prim_func
    def main(X: T.Tensor((rows, columns), dtype), Y: T.Tensor((rows, columns), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((rows, columns), dtype)
            y = T.alloc_shared((rows, columns), dtype)
            T.copy(X, x)
            for i, j in T.Parallel(rows, columns):
                y[i, j] = x[i, j] * x[i, 3]
            for i in T.Parallel(rows):
                y[i, 1] = x[i, 2]
            T.copy(y, Y)

    x, y = drawn((rows, columns), dtype), drawn((rows, columns), dtype)
    expected = x * x[:, 3:4]
    expected[:, 1] = x[:, 2]
    compiled(main)(x, y)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_place_known_at_run_time(dtype: str) -> None:
    @T.prim_func
    def main(X: T.Tensor((6, 40), dtype), Y: T.Tensor((6, 40), dtype), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((6, 40), dtype)
            y = T.alloc_shared((6, 40), dtype)
            T.copy(X, x)
            T.copy(Y, y)
            for i, j in T.Parallel(6, 30):
                y[i, n + j] = x[i, j + n] * x[i, j]
            for k in T.serial(2):
                for i, j in T.Parallel(6, 16):
                    y[i, k * 16 + j] = y[i, k * 16 + j] + x[i, j]
            T.copy(y, Y)

    kernel = compiled(main)
    assert "x (gathered), y (merged into)" in loops(kernel).splitlines()[0]
    assert loops(kernel).splitlines()[1].endswith("T.Parallel 6x16  vector: add")  # a whole number of blocks, whichever k is
    for n in range(11):
        x, y = drawn((6, 40), dtype), drawn((6, 40), dtype)
        expected = y.copy()
        expected[:, n:n + 30] = x[:, n:n + 30] * x[:, :30]
        for k in range(2):
            expected[:, k * 16:k * 16 + 16] += x[:, :16]
        kernel(x, y, n)
        np.testing.assert_array_equal(y, expected)


def test_three_axes() -> None:
    @T.prim_func
    def main(X: T.Tensor((3, 5, 11), "float32"), Y: T.Tensor((3, 5, 11), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((3, 5, 11), "float32")
            y = T.alloc_shared((3, 5, 11), "float32")
            T.copy(X, x)
            T.copy(Y, y)
            for i, j, k in T.Parallel(3, 4, 9):
                y[i, j, k + 2] = x[i, j + 1, k + 1] + x[i, j, 3] + x[1, 1, k]
            T.copy(y, Y)

    x, y = drawn((3, 5, 11), "float32"), drawn((3, 5, 11), "float32")
    expected = y.copy()
    expected[:, :4, 2:] = x[:, 1:, 1:10] + x[:, :4, 3:4] + x[1, 1, :9]
    compiled(main)(x, y)
    np.testing.assert_array_equal(y, expected)


def test_rows_of_a_buffer_that_is_also_seen_flat() -> None:
    """Its rows have no gaps, so that they begin anywhere."""
    @T.prim_func
    def main(X: T.Tensor((50,), "float32"), Y: T.Tensor((5, 10), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            flat = T.alloc_shared((50,), "float32")
            y = T.alloc_shared((5, 10), "float32")
            T.copy(X, flat)
            x = T.reshape(flat, (5, 10))
            for i, j in T.Parallel(5, 10):
                y[i, j] = x[i, j] * 2.0
            for i, j in T.Parallel(3, 7):
                y[i + 1, j] = x[i + 2, j] + x[i, j]
            T.copy(y, Y)

    x = drawn((50,), "float32")
    y = np.zeros((5, 10), np.float32)
    expected = x.reshape(5, 10) * 2
    expected[1:4, :7] = x.reshape(5, 10)[2:, :7] + x.reshape(5, 10)[:3, :7]
    compiled(main)(x, y)
    np.testing.assert_array_equal(y, expected)


def test_a_buffer_of_the_kernels_own_has_rows_of_blocks() -> None:
    """The buffer is not stored to GM; some of its rows are read."""
    @T.prim_func
    def main(X: T.Tensor((6, 10), "float32"), Y: T.Tensor((4, 6), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((6, 10), "float32")
            half = T.alloc_shared((6, 10), "float32")
            y = T.alloc_shared((4, 6), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(6, 10):
                half[i, j] = x[i, j] * 0.5
            for i, j in T.Parallel(4, 6):
                y[i, j] = half[i + 1, j] + half[i + 2, j]
            T.copy(y, Y)

    x, y = drawn((6, 10), "float32"), np.zeros((4, 6), np.float32)
    kernel = compiled(main)
    kernel(x, y)
    assert "no block" not in loops(kernel)
    np.testing.assert_array_equal(y, x[1:5, :6] * 0.5 + x[2:6, :6] * 0.5)


def test_between_tensors_and_buffers() -> None:
    """From GM to columns in UB, and from there to GM."""
    @T.prim_func
    def main(X: T.Tensor((6, 10), "float16"), Y: T.Tensor((6, 30), "float16"), Z: T.Tensor((6, 9), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            y = T.alloc_shared((6, 30), "float16")
            T.copy(Y, y)
            for i, j in T.Parallel(6, 10):
                y[i, j + 5] = X[i, j]
            for i, j in T.Parallel(6, 9):
                Z[i, j] = y[i, j + 3]
            T.copy(y, Y)

    x, y, z = drawn((6, 10), "float16"), drawn((6, 30), "float16"), np.zeros((6, 9), np.float16)
    expected = y.copy()
    expected[:, 5:15] = x
    compiled(main)(x, y, z)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(z, expected[:, 3:12])


def test_an_accumulator() -> None:
    """Columns of a product, in a kernel of both cores whose rows both Vector cores share."""
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 48), "float16"), C: T.Tensor((32, 40), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 48), "float16")
            c = T.alloc_fragment((32, 48), "float32")
            d = T.alloc_shared((32, 40), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, initC=True)
            for i, j in T.Parallel(32, 40):
                d[i, j] = c[i, j + 5] + c[i, 1]
            T.copy(d, C)

    a, b = drawn((32, 32), "float16"), drawn((32, 48), "float16")
    c = np.zeros((32, 40), np.float32)
    compiled(main)(a, b, c)
    product = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(c, product[:, 5:45] + product[:, 1:2])


def test_what_is_aligned_is_left_as_it_is() -> None:
    @T.prim_func
    def main(X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 64), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(6, 48):
                x[i + 1, j + 8] = x[i + 1, j + 8] * 2.0
            T.copy(x, Y)

    kernel = compiled(main)
    assert loops(kernel).endswith("T.Parallel 6x48  vector: mul")


def test_few_points_are_done_one_by_one() -> None:
    @T.prim_func
    def main(X: T.Tensor((2, 8), "float32"), Y: T.Tensor((2, 8), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((2, 8), "float32")
            T.copy(X, x)
            for i in T.Parallel(2):
                x[i, 1] = x[i, 2]
            T.copy(x, Y)

    x, y = drawn((2, 8), "float32"), np.zeros((2, 8), np.float32)
    kernel = compiled(main)
    kernel(x, y)
    assert "point by point: an access to x does not begin at a multiple of 32 bytes" in loops(kernel)
    expected = x.copy()
    expected[:, 1] = x[:, 2]
    np.testing.assert_array_equal(y, expected)
