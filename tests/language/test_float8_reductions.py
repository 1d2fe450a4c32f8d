"""Reductions and elementwise work of float8, which the Vector core computes in float32, and results of products as float8."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

KINDS = ("float8_e4m3fn", "float8_e5m2")


def reduction(source: str, result: str, function: str, clear: bool, dim: int) -> Any:
    size = (32, 64)[1 - dim]

    @T.prim_func
    def main(A: T.Tensor((32, 64), source), B: T.Tensor((size,), result)):
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_fragment((32, 64), source)
            b = T.alloc_fragment((size,), result)
            T.copy(A, a)
            T.copy(B, b)
            getattr(T, function)(a, b, dim=dim, clear=clear)
            T.copy(b, B)

    return tilelang.compile(main, target="npu", chip="a5")


@pytest.mark.parametrize("clear", [True, False])
@pytest.mark.parametrize("function", ["reduce_sum", "reduce_max", "reduce_min", "reduce_absmax"])
@pytest.mark.parametrize(("source", "result"), [(KINDS[0], KINDS[0]), (KINDS[0], "float32"), (KINDS[1], "float32")])
def test_reductions(rng: np.random.Generator, source: str, result: str, function: str, clear: bool) -> None:
    kernel = reduction(source, result, function, clear, 1)
    kinds = [parameter.dtype.numpy for parameter in kernel.params]
    a, b = (rng.integers(-3, 4, shape).astype(kind) for shape, kind in zip(((32, 64), (32,)), kinds, strict=True))
    values = a.astype(np.float32)
    compute = {"sum": np.add, "max": np.maximum, "min": np.minimum}[function[-3:]]
    expected = compute.reduce(np.abs(values) if "abs" in function else values, axis=1)
    expected = (expected if clear else compute(b.astype(np.float32), expected)).astype(kinds[1])
    for run in (kernel, kernel.interpret):
        found = b.copy()
        run(a, found)
        np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))
    assert kernel.last_launch.hazards == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_operation_rounds(rng: np.random.Generator, kind: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 64), kind), B: T.Tensor((32, 64), kind), C: T.Tensor((32, 64), kind)):
        with T.Kernel(1, threads=128) as bx:
            a, b, c = T.alloc_fragment((32, 64), kind), T.alloc_fragment((32, 64), kind), T.alloc_fragment((32, 64), kind)
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 64):
                c[i, j] = T.max(a[i, j] * b[i, j] + a[i, j], b[i, j])
            T.copy(c, C)

    kernel = tilelang.compile(main, target="npu", chip="a5")
    element = kernel.params[0].dtype.numpy
    a, b = (rng.uniform(-2, 2, (32, 64)).astype(element) for _ in range(2))
    wide = [array.astype(np.float32) for array in (a, b)]
    product = (wide[0] * wide[1]).astype(element).astype(np.float32)
    expected = np.maximum((product + wide[0]).astype(element).astype(np.float32), wide[1])
    for run in (kernel, kernel.interpret):
        found = np.zeros_like(a)
        run(a, b, found)
        np.testing.assert_array_equal(found.astype(np.float32), expected)


@pytest.mark.parametrize(("chip", "result"), [
    ("a5", KINDS[0]), ("a5", KINDS[1]), ("a5", "int32"), ("910B2", "int32"), ("910B2", "int8")])
@pytest.mark.parametrize("through", [False, True])
def test_products_are_converted_in_ub(rng: np.random.Generator, chip: str, result: str, through: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((100, 64), "float16"), B: T.Tensor((64, 96), "float16"), C: T.Tensor((100, 96), result)):
        with T.Kernel(T.ceildiv(96, 32), T.ceildiv(100, 64), threads=128) as (bx, by):
            a, b = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 32), "float16")
            acc, out = T.alloc_fragment((64, 32), "float32"), T.alloc_shared((64, 32), result)
            T.copy(A[by * 64, 0], a)
            T.copy(B[0, bx * 32], b)
            T.gemm(a, b, acc, clear_accum=True)
            if through:
                T.copy(acc, out)
                T.copy(out, C[by * 64, bx * 32])
            else:
                T.copy(acc, C[by * 64, bx * 32])

    kernel = tilelang.compile(main, target="npu", chip=chip)
    a, b = rng.integers(-2, 3, (100, 64)).astype(np.float16), rng.integers(-1, 2, (64, 96)).astype(np.float16)
    element = kernel.params[2].dtype.numpy
    expected = (a.astype(np.float32) @ b.astype(np.float32)).astype(element).astype(np.float32)
    for run in (kernel, kernel.interpret):
        found = np.zeros((100, 96), element)
        run(a, b, found)
        np.testing.assert_array_equal(found.astype(np.float32), expected)
    assert kernel.last_launch.hazards == []
