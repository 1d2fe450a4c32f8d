"""Products that are added to results of vector work: the values, and that sums of products alone stay in L0C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


def _run(main: Any, *arrays: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], str]:
    kernel = tilelang.compile(main, out_idx=[-1], target="npuir")
    return kernel(*arrays), kernel.mlir("accumulate-in-ub")


@pytest.fixture
def matrices(rng: np.random.Generator) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return rng.standard_normal((32, 96)).astype(np.float16), rng.standard_normal((96, 48)).astype(np.float16)


@pytest.fixture(params=["shared", "fragment"])
def allocate(request: pytest.FixtureRequest) -> Any:
    return T.alloc_shared if request.param == "shared" else T.alloc_fragment


def test_rescaled_in_every_iteration(matrices: Any, allocate: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 96), "float16"), B: T.Tensor((96, 48), "float16"), C: T.Tensor((32, 48), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 48), "float16")
            c = allocate((32, 48), "float32")
            T.clear(c)
            for k in T.serial(3):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.vmul(c, 0.5, c)
                T.gemm(a, b, c)
            T.copy(c, C)

    a, b = matrices
    expected = np.zeros((32, 48), np.float32)
    for k in range(3):
        part = slice(32 * k, 32 * k + 32)
        expected = expected * np.float32(0.5) + a[:, part].astype(np.float32) @ b[part].astype(np.float32)
    c, _ = _run(main, a, b)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)


def test_started_from_a_loaded_tile_or_not(matrices: Any, allocate: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 96), "float16"), B: T.Tensor((96, 48), "float16"), D: T.Tensor((32, 48), "float32"),
             fresh: T.int32, C: T.Tensor((32, 48), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((32, 96), "float16")
            b = T.alloc_shared((96, 48), "float16")
            c = allocate((32, 48), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(D, c)
            T.vadd(c, 1.0, c)
            T.gemm(a, b, c, initC=(fresh == 1))
            T.copy(c, C)

    a, b = matrices
    d = np.arange(32 * 48, dtype=np.float32).reshape(32, 48)
    product = a.astype(np.float32) @ b.astype(np.float32)
    for fresh, expected in ((0, product + d + 1), (1, product)):
        c, _ = _run(main, a, b, d, fresh)
        np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


def test_started_over_by_the_first_iteration_stays_in_l0c(matrices: Any, allocate: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 96), "float16"), B: T.Tensor((96, 48), "float16"), C: T.Tensor((2, 32, 48), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 48), "float16")
            c = allocate((32, 48), "float32")
            for turn in T.serial(2):
                for k in T.serial(3):
                    T.copy(A[0, k * 32], a)
                    T.copy(B[k * 32, 0], b)
                    T.gemm(a, b, c, initC=(k == 0))
                T.vmul(c, 2.0, c)
                T.copy(c, C[turn, 0, 0])

    a, b = matrices
    c, stage = _run(main, a, b)
    assert stage.count("tile.gemm") == 1 and "product" not in stage
    np.testing.assert_allclose(c, [2 * (a.astype(np.float32) @ b.astype(np.float32))] * 2, rtol=1e-4, atol=1e-4)


def test_cleared_for_the_next_iteration(matrices: Any, allocate: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 96), "float16"), B: T.Tensor((96, 48), "float16"), C: T.Tensor((3, 32, 48), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 48), "float16")
            c = allocate((32, 48), "float32")
            T.clear(c)
            for k in T.serial(3):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
                T.copy(c, C[k, 0, 0])
                T.clear(c)

    a, b = matrices
    parts = [a[:, 32 * k:32 * k + 32].astype(np.float32) @ b[32 * k:32 * k + 32].astype(np.float32) for k in range(3)]
    c, _ = _run(main, a, b)
    np.testing.assert_allclose(c, parts, rtol=1e-4, atol=1e-4)


def test_cleared_before_a_loop_that_may_not_run(matrices: Any, allocate: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 96), "float16"), B: T.Tensor((96, 48), "float16"), n: T.int32, C: T.Tensor((32, 48), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 48), "float16")
            c = allocate((32, 48), "float32")
            T.clear(c)
            for k in T.serial(n):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    a, b = matrices
    for n in (0, 1, 3):
        c, _ = _run(main, a, b, n)
        np.testing.assert_allclose(c, a[:, :32 * n].astype(np.float32) @ b[:32 * n].astype(np.float32), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("clear_rows", [32, 16])
@pytest.mark.parametrize("step", [0, 16])
def test_a_clear_and_a_product_of_different_parts(matrices: Any, allocate: Any, step: int, clear_rows: int) -> None:
    """A product with initC writes exactly the elements that the preceding clear wrote."""

    @T.prim_func
    def main(A: T.Tensor((32, 96), "float16"), B: T.Tensor((96, 48), "float16"), C: T.Tensor((32, 48), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((32, 96), "float16")
            b = T.alloc_shared((96, 48), "float16")
            c = allocate((32, 48), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, initC=True)
            T.clear(c[0:clear_rows, :])
            for i in T.serial(2):
                T.gemm(a[i * step:i * step + 16, :], b, c[i * step:i * step + 16, :])
            T.copy(c, C)

    a, b = matrices
    product = a.astype(np.float32) @ b.astype(np.float32)
    expected = np.where(np.arange(32)[:, None] < clear_rows, 0, product)
    for i in range(2):
        part = slice(i * step, i * step + 16)
        expected[part] += product[part]
    c, _ = _run(main, a, b)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [32, 19])
def test_a_product_of_fewer_rows_than_are_cleared(matrices: Any, allocate: Any, rows: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 96), "float16"), B: T.Tensor((96, 48), "float16"), n: T.int32, C: T.Tensor((32, 48), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((32, 96), "float16")
            b = T.alloc_shared((96, 48), "float16")
            c = allocate((32, 48), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c, [n, 96, 48])
            T.copy(c, C)

    a, b = matrices
    product = a.astype(np.float32) @ b.astype(np.float32)
    kernel = tilelang.compile(main, out_idx=[-1], target="npuir")
    expected = np.where(np.arange(32)[:, None] < rows, product, 0)
    np.testing.assert_allclose(kernel(a, b, rows), expected, rtol=1e-4, atol=1e-4)


def _two_products(rows: int, wide: int, narrow: int, steps: int) -> Any:
    """``C = A @ B`` and ``D = A @ E``, whose accumulators are both needed by the next iteration."""
    @T.prim_func
    def main(A: T.Tensor((rows, steps * 32), "float16"), B: T.Tensor((steps * 32, wide), "float16"),
             E: T.Tensor((steps * 32, narrow), "float16"), D: T.Tensor((rows, narrow), "float32"),
             C: T.Tensor((rows, wide), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((rows, 32), "float16")
            b = T.alloc_shared((32, wide), "float16")
            e = T.alloc_shared((32, narrow), "float16")
            c = T.alloc_fragment((rows, wide), "float32")
            d = T.alloc_fragment((rows, narrow), "float32")
            T.clear(c)
            T.clear(d)
            for k in T.Pipelined(steps, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.copy(E[k * 32, 0], e)
                T.gemm(a, b, c)
                T.gemm(a, e, d)
            T.copy(c, C)
            T.copy(d, D)

    return main


def test_accumulators_that_l0c_has_no_room_for_are_in_ub(rng: np.random.Generator) -> None:
    a, b, e = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((128, 96), (96, 192), (96, 128)))
    d = np.zeros((128, 128), np.float32)
    kernel = tilelang.compile(_two_products(128, 192, 128, 3), out_idx=[-1], target="npuir", sanitize=True)
    np.testing.assert_array_equal(kernel(a, b, e, d), a.astype(np.float32) @ b.astype(np.float32))
    np.testing.assert_array_equal(d, a.astype(np.float32) @ e.astype(np.float32))
    assert kernel.mlir("accumulate-in-ub").count('tile.elementwise "add"') == 4  # each in two parts


def test_accumulators_that_l0c_has_room_for_stay(rng: np.random.Generator) -> None:
    a, b, e = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((128, 64), (64, 128), (64, 96)))
    kernel = tilelang.compile(_two_products(128, 128, 96, 2), out_idx=[-1], target="npuir", sanitize=True)
    np.testing.assert_array_equal(kernel(a, b, e, np.zeros((128, 96), np.float32)), a.astype(np.float32) @ b.astype(np.float32))
    assert 'tile.elementwise "add"' not in kernel.mlir("accumulate-in-ub")
