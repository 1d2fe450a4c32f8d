"""Functions of numbers in ``T.Parallel``: one vector operation for all points, with NumPy's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], float, float]] = {
    "exp": (T.exp, np.exp, -3, 3), "exp2": (T.exp2, np.exp2, -3, 3), "log": (T.log, np.log, 0.1, 9),
    "log2": (T.log2, np.log2, 0.1, 9), "log10": (T.log10, np.log10, 0.1, 9), "log1p": (T.log1p, np.log1p, -0.5, 9),
    "tanh": (T.tanh, np.tanh, -3, 3), "sin": (T.sin, np.sin, -3, 3), "cos": (T.cos, np.cos, -3, 3),
    "tan": (T.tan, np.tan, -1, 1), "atan": (T.atan, np.arctan, -3, 3), "sqrt": (T.sqrt, np.sqrt, 0, 9),
    "rsqrt": (T.rsqrt, lambda x: 1 / np.sqrt(x), 0.1, 9), "abs": (T.abs, np.abs, -3, 3),
    "floor": (T.floor, np.floor, -9, 9), "ceil": (T.ceil, np.ceil, -9, 9), "trunc": (T.trunc, np.trunc, -9, 9),
    "round": (T.round, np.rint, -9, 9),
}


def kernel_of(function: Callable[..., Any], dtype: str) -> Any:
    @tilelang.jit(target="npuir", sanitize=True)
    def factory(rows: int, columns: int) -> Any:
        @T.prim_func
        def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
            with T.Kernel(1, threads=128):
                x = T.alloc_fragment((16, 32), dtype)
                T.copy(A[0, 0], x)
                for i, j in T.Parallel(16, 32):
                    x[i, j] = function(x[i, j])
                T.copy(x, B[0, 0])

        return main

    return factory(13, 27)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str, dtype: str) -> None:
    function, reference, low, high = FUNCTIONS[name]
    kernel = kernel_of(function, dtype)
    assert "T.Parallel 16x32  vector: " in str(kernel.explain())
    x = np.random.default_rng(0).uniform(low, high, (13, 27)).astype(dtype)
    y = np.zeros_like(x)
    kernel(x, y)
    np.testing.assert_allclose(y, reference(x.astype(np.float32)).astype(dtype), rtol=1e-5 if dtype == "float32" else 2e-3,
                               atol=1e-6)


def test_a_power() -> None:
    kernel = kernel_of(lambda x: T.pow(x, 2.5), "float32")
    x = np.random.default_rng(0).uniform(0, 3, (13, 27)).astype(np.float32)
    y = np.zeros_like(x)
    kernel(x, y)
    np.testing.assert_allclose(y, x**2.5, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", ["exp2", "acosh"])  # a vector operation, and one that goes point by point
@pytest.mark.parametrize("which", [1, 9])
def test_a_product_that_is_changed_in_place_in_a_loop(function: str, which: int) -> None:
    """As for the scores of attention: the Cube core computes them, the Vector core changes them in place, the Cube core reads
    them."""
    of = {"exp2": T.exp2, "acosh": T.acosh}[function]

    @tilelang.jit(target="npuir", sanitize=True)
    def factory(n: int, d: int, size: int = 32) -> Any:
        @T.prim_func
        def main(Q: T.Tensor((size, d), "float16"), K: T.Tensor((n, d), "float16"), C: T.Tensor((size, d), "float32")):
            with T.Kernel(1, threads=128):
                q = T.alloc_shared((size, d), "float16")
                k = T.alloc_shared((size, d), "float16")
                scores = T.alloc_fragment((size, size), "float32")
                half = T.alloc_fragment((size, size), "float16")
                c = T.alloc_fragment((size, d), "float32")
                T.copy(Q, q)
                T.clear(c)
                for s in T.Pipelined(n // size, num_stages=2):
                    T.copy(K[s * size, 0], k)
                    T.clear(scores)
                    T.gemm(q, k, scores, transpose_B=True)
                    for i, j in T.Parallel(size, size):
                        scores[i, j] = of(2 + scores[i, j] * 0.01)
                    if s == which:
                        for i, j in T.Parallel(size, size):
                            scores[i, j] = T.if_then_else(i > j, scores[i, j], 0)
                    for i, j in T.Parallel(size, size):
                        half[i, j] = scores[i, j] * 2.0
                    T.gemm(half, k, c)
                T.copy(c, C)

        return main

    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((32, 32)).astype(np.float16), rng.standard_normal((96, 32)).astype(np.float16)
    c, wanted = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    factory(96, 32)(q, k, c)
    for s in range(3):
        part = k[32 * s:32 * (s + 1)].astype(np.float32)
        scores = {"exp2": np.exp2, "acosh": np.arccosh}[function](2 + q.astype(np.float32) @ part.T * 0.01)
        if s == which:
            scores = np.tril(scores, -1)
        wanted += (2 * scores).astype(np.float16).astype(np.float32) @ part
    np.testing.assert_allclose(c, wanted, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("op", [lambda a, b: a + b, lambda a, b: a * b, T.max, T.min], ids=["add", "mul", "max", "min"])
def test_a_constant_first_operand_needs_no_tile(op: Callable[..., Any]) -> None:
    """``0.5 * x`` is ``x * 0.5``: HIVM takes the scalar second, and no tile is filled with it."""
    kernels = [kernel_of(lambda x: op(0.5, x), "float32"), kernel_of(lambda x: op(x, 0.5), "float32")]
    first, second = (kernel.mlir() for kernel in kernels)
    assert first == second
    x = np.random.default_rng(0).uniform(-2, 2, (13, 27)).astype(np.float32)
    y = np.zeros_like(x)
    kernels[0](x, y)
    reference = {T.max: np.maximum, T.min: np.minimum}.get(op, op)
    np.testing.assert_array_equal(y, reference(np.float32(0.5), x))
