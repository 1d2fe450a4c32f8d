"""Products that are operands of products: the way from L0C to L1 depends on the element type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir", sanitize=True)
def cubed(size: int, copied: bool, dtype: str, again: int = 1) -> Any:
    """``A @ A @ A``, as many times as ``again`` says."""
    @T.prim_func
    def main(A: T.Tensor((size, size), dtype), C: T.Tensor((size, size), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared([size, size], dtype)
            x = T.alloc_fragment([size, size], "float32")
            y = T.alloc_shared([size, size], dtype)
            c = T.alloc_fragment([size, size], "float32")
            T.copy(A, a)
            for _ in T.serial(again):
                T.gemm(a, a, x, initC=True)
                if copied:
                    T.copy(x, y)
                    T.gemm(y, a, c, initC=True)
                else:
                    T.gemm(x, a, c, initC=True)
            T.copy(c, C)

    return main


@pytest.mark.parametrize("again", [1, 3])
@pytest.mark.parametrize(("copied", "dtype"), [(False, "float32"), (True, "float32"), (True, "float16"), (True, "bfloat16")])
@pytest.mark.parametrize("size", [16, 48])
def test_values(size: int, copied: bool, dtype: str, again: int) -> None:
    element = T.dtype(dtype).numpy
    a = np.random.default_rng(0).standard_normal((size, size)).astype(element)
    c = np.zeros((size, size), np.float32)
    cubed(size, copied, dtype, again)(a, c)
    wide = a.astype(np.float32)
    wanted = (wide @ wide).astype(element).astype(np.float32) @ wide
    tolerance = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1.0}[dtype]
    np.testing.assert_allclose(c, wanted, rtol=1e-4, atol=tolerance)


def test_memories_that_the_author_named() -> None:
    @tilelang.jit(target="npuir", sanitize=True)
    def factory() -> Any:
        @T.prim_func
        def main(A: T.Tensor((16, 16), "float32"), C: T.Tensor((16, 16), "float32")):
            with T.Kernel(1, is_npu=True):
                a = T.alloc_L1([16, 16], "float32")
                x = T.alloc_L0C([16, 16], "float32")
                T.copy(A, a)
                T.gemm(a, a, x, initC=True)
                T.copy(x, a)
                T.gemm(a, a, x, initC=True)
                T.copy(x, C)

        return main

    a = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)
    c = np.zeros_like(a)
    factory()(a, c)
    np.testing.assert_allclose(c, (a @ a) @ (a @ a), rtol=1e-4, atol=1e-4)
