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
