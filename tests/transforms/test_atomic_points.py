"""``T.atomic_add`` of numbers: at each point of a ``T.Parallel`` one tile is added, elsewhere a single element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir", sanitize=True)
def split_products(M: int, N: int, K: int, parts: int, block: int = 32, scaled: bool = False) -> Any:
    """``A @ B``, to which blocks that each have a part of K add."""
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), parts, threads=128) as (bx, by, bz):
            a = T.alloc_shared((block, block), "float16")
            b = T.alloc_shared((block, block), "float16")
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(K // parts // block, num_stages=2):
                T.copy(A[by * block, bz * (K // parts) + k * block], a)
                T.copy(B[bz * (K // parts) + k * block, bx * block], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(block, block):
                if scaled:
                    T.atomic_add(C[by * block + i, bx * block + j], c[i, j] * 2.0)
                else:
                    T.atomic_add(C[by * block + i, bx * block + j], c[i, j])

    return main


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("m", "n"), [(64, 32), (50, 70)])
def test_products(m: int, n: int, scaled: bool) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, 128)).astype(np.float16), rng.standard_normal((128, n)).astype(np.float16)
    c = np.ones((m, n), np.float32)
    kernel = split_products(m, n, 128, 2, scaled=scaled)
    kernel(a, b, c)
    wanted = 1 + (2 if scaled else 1) * (a.astype(np.float32) @ b.astype(np.float32))
    np.testing.assert_allclose(c, wanted, rtol=1e-4, atol=1e-3)
    assert "point by point" not in str(kernel.explain())


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_points_that_share_an_element(dtype: str) -> None:
    """Rows add up in one element each: no tile has each of them once, so the points go one by one."""

    @tilelang.jit(target="npuir", sanitize=True)
    def factory() -> Any:
        @T.prim_func
        def main(A: T.Tensor((8, 16), dtype), S: T.Tensor((8,), dtype)):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((8, 16), dtype)
                T.copy(A, a)
                for i, j in T.Parallel(8, 16):
                    T.atomic_add(S[i], a[i, j])

        return main

    a = np.random.default_rng(0).integers(-9, 9, (8, 16)).astype(dtype)
    s = np.ones(8, dtype)
    factory()(a, s)
    np.testing.assert_array_equal(s, 1 + a.sum(axis=1))


def test_a_number() -> None:
    @tilelang.jit(target="npuir", sanitize=True)
    def factory(blocks: int) -> Any:
        @T.prim_func
        def main(S: T.Tensor((3,), "int32")):
            with T.Kernel(blocks, threads=128) as b:
                T.atomic_add(S[b % 3], b + 1)

        return main

    s = np.zeros(3, np.int32)
    factory(10)(s)
    np.testing.assert_array_equal(s, [1 + 4 + 7 + 10, 2 + 5 + 8, 3 + 6 + 9])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "int16"])
def test_maxima_and_minima(dtype: str) -> None:
    """Tiles, points and numbers of several blocks, in the compiled and in the interpreted kernel."""

    @tilelang.jit(target="npuir", sanitize=True)
    def factory() -> Any:
        @T.prim_func
        def main(A: T.Tensor((3, 40, 96), dtype), High: T.Tensor((40, 96), dtype), Low: T.Tensor((40, 96), dtype),
                 Rows: T.Tensor((48,), dtype), Blocks: T.Tensor((2,), "int32")):
            with T.Kernel(3, 3, threads=128) as (bx, by):
                a = T.alloc_shared((16, 96), dtype)
                top = T.alloc_fragment((16,), dtype)
                T.copy(A[by, bx * 16, 0], a)
                T.atomic_max(High[bx * 16, 0], a)
                for i, j in T.Parallel(16, 96):
                    if bx * 16 + i < 40:
                        T.atomic_min(Low[bx * 16 + i, j], a[i, j])
                T.reduce_max(a, top, dim=1)
                for i in T.Parallel(16):
                    T.atomic_max(Rows[bx * 16 + i], top[i], memory_order="relaxed")
                T.atomic_max(Blocks[0], bx + by)
                T.atomic_min(Blocks[1], bx - by)

        return main

    kind = tilelang.DataType(dtype).numpy
    a = np.random.default_rng(0).integers(-99, 99, (3, 40, 96)).astype(kind)
    for interpret in (False, True):
        high, low = np.full((40, 96), 7, kind), np.full((40, 96), 7, kind)
        rows, blocks = np.full(48, -120, kind), np.zeros(2, np.int32)
        kernel = factory()
        (kernel.interpret if interpret else kernel)(a, high, low, rows, blocks)
        np.testing.assert_array_equal(high, np.maximum(a.max(axis=0), kind.type(7)))
        np.testing.assert_array_equal(low, np.minimum(a.min(axis=0), kind.type(7)))
        np.testing.assert_array_equal(rows[:40], a.max(axis=(0, 2)))
        assert blocks.tolist() == [4, -2]


def test_a_maximum_out_of_l0c() -> None:
    @tilelang.jit(target="npuir", sanitize=True)
    def factory() -> Any:
        @T.prim_func
        def main(A: T.Tensor((2, 32, 64), "float16"), B: T.Tensor((64, 32), "float16"), C: T.Tensor((32, 32), "float32")):
            with T.Kernel(2, threads=128) as block:
                a = T.alloc_shared((32, 64), "float16")
                b = T.alloc_shared((64, 32), "float16")
                c = T.alloc_fragment((32, 32), "float32")
                T.copy(A[block, 0, 0], a)
                T.copy(B, b)
                T.gemm(a, b, c, initC=True)
                T.atomic_max(C, c)

        return main

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((2, 32, 64), (64, 32)))
    c = np.zeros((32, 32), np.float32)
    factory()(a, b, c)
    np.testing.assert_array_equal(c, np.maximum((a.astype(np.float32) @ b.astype(np.float32)).max(axis=0), 0))
