"""Accumulators of float16 and bfloat16 in kernels for a GPU: the Cube core adds in float32."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError

TYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def product(dtype: str, k: int, *, threads: int | None = 128) -> Any:
    launch: dict[str, Any] = {"is_npu": True} if threads is None else {"threads": threads}

    @T.prim_func
    def main(A: T.Tensor((96, k), dtype), B: T.Tensor((k, 96), dtype), C: T.Tensor((96, 96), dtype)):
        with T.Kernel(2, 2, **launch) as (bx, by):
            a = T.alloc_shared((48, 32), dtype)
            b = T.alloc_shared((32, 48), dtype)
            c = T.alloc_fragment((48, 48), dtype)
            T.clear(c)
            for n in T.Pipelined(k // 32, num_stages=2):
                T.copy(A[by * 48, n * 32], a)
                T.copy(B[n * 32, bx * 48], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 48, bx * 48])

    return tilelang.compile(main, target="npuir")


def drawn(dtype: str, *shape: int) -> Any:
    return np.random.default_rng(list(shape)).standard_normal(shape).astype(TYPES[dtype])


@pytest.mark.parametrize("dtype", TYPES)
def test_sums_are_rounded_once(dtype: str) -> None:
    kernel, a, b, c = product(dtype, 256), drawn(dtype, 96, 256), drawn(dtype, 256, 96), np.zeros((96, 96), TYPES[dtype])
    kernel(a, b, c)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    step = np.spacing(np.abs(exact).astype(np.float32)) * 2.0 ** (23 - (10 if dtype == "float16" else 7))
    assert (np.abs(c.astype(np.float64) - exact) <= 0.51 * step + 1e-4).all()
    assert kernel.check(a, b, np.zeros_like(c))


@pytest.mark.parametrize("dtype", TYPES)
def test_statements_before_the_product_are_converted(dtype: str) -> None:
    """Elements are filled, copied and stored before the product, and read after it."""
    @T.prim_func
    def main(A: T.Tensor((64, 64), dtype), B: T.Tensor((64, 64), dtype), C: T.Tensor((3, 64, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 64), dtype)
            b = T.alloc_shared((64, 64), dtype)
            c = T.alloc_fragment((64, 64), dtype)
            T.copy(A, a)
            T.copy(B, b)
            T.fill(c, 0.5)
            T.copy(B, c)
            for n in T.serial(3):
                for i, j in T.Parallel(64, 64):
                    c[i, j] = T.if_then_else(j < 32, n, -T.infinity(dtype))
                T.gemm(a, b, c)
                for i, j in T.Parallel(64, 64):
                    c[i, j] = c[i, j] + 1.0
                T.copy(c, C[n, 0, 0])

    kernel: Any = tilelang.compile(main, target="npuir")
    a, b, c = drawn(dtype, 64, 64), drawn(dtype, 64, 64)[::-1].copy(), np.zeros((3, 64, 64), np.float32)
    kernel(a, b, c)
    whole = a.astype(np.float32) @ b.astype(np.float32)
    for n in range(3):
        wanted = whole + n + 1
        wanted[:, 32:] = -np.inf
        np.testing.assert_allclose(c[n], wanted, rtol=1e-5, atol=1e-4)
    assert kernel.check(a, b, np.zeros_like(c))


def test_a_kernel_for_an_npu_states_float32() -> None:
    with pytest.raises(TileError, match="no product of float16 and float16 into float16") as caught:
        product("float16", 64, threads=None)
    assert caught.value.code == "T121"


@pytest.mark.parametrize("use", ["reduction", "load"])
def test_an_accumulator_that_was_read_before_stays(use: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float16")
            s = T.alloc_fragment((64,), "float16")
            T.copy(A, a)
            T.copy(A, c)
            if use == "reduction":
                T.reduce_max(c, s, dim=1)
            else:
                for i in T.Parallel(64):
                    s[i] = c[i, 0]
            T.gemm(a, a, c)
            T.copy(c, C)

    with pytest.raises(TileError, match="no product of float16 and float16 into float16"):
        tilelang.compile(main, target="npuir")


def test_a_product_of_integers_names_the_types_of_the_author() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "int8"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 64), "int8")
            c = T.alloc_fragment((64, 64), "float16")
            T.copy(A, a)
            T.gemm(a, a, c)
            T.copy(c, C)

    with pytest.raises(TileError, match="no product of int8 and int8 into float16"):
        tilelang.compile(main, target="npuir")
