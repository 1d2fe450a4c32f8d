"""Buffers that a branch changes in place, or writes in another memory than the other branch: after both, one memory has the
value.

A buffer that a loop initialises need not be copied to the loop's memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

ROWS, WIDE, DEEP = 48, 64, 32
RNG = np.random.default_rng(5)


def _product(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a.astype(np.float32) @ b.astype(np.float32).T


@tilelang.jit(out_idx=[-1], target="npuir")
def masked(tiles, stages, way):
    """The first tile's end is masked, as attention over blocks that an index names masks the last one of a cache."""

    @T.prim_func
    def masked(
        A: T.Tensor((ROWS, DEEP), "float16"), B: T.Tensor((tiles * WIDE, DEEP), "float16"), S: T.Tensor((4,), "int32"),
        C: T.Tensor((ROWS, tiles * WIDE), "float32"),
    ):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((ROWS, DEEP), "float16")
            b = T.alloc_shared((WIDE, DEEP), "float16")
            s = T.alloc_fragment((ROWS, WIDE), "float32")
            T.copy(A, a)
            for k in T.Pipelined(tiles, num_stages=stages):
                T.copy(B[k * WIDE, 0], b)
                T.gemm(a, b, s, transpose_B=True, clear_accum=True)
                if way == "in place":
                    if k == S[1]:
                        for i, j in T.Parallel(ROWS, WIDE):
                            s[i, j] = T.if_then_else(j >= S[0], -1.0, s[i, j])
                elif way == "nested":
                    if k < 2:  # noqa: SIM102  (a branch in a branch)
                        if k == S[1]:
                            for i, j in T.Parallel(ROWS, WIDE):
                                s[i, j] = T.if_then_else(j >= S[0], -1.0, s[i, j])
                else:
                    if k == S[1]:
                        for i, j in T.Parallel(ROWS, WIDE):
                            s[i, j] = T.if_then_else(j >= S[0], -1.0, s[i, j])
                    else:
                        T.gemm(a, b, s, transpose_B=True)
                for i, j in T.Parallel(ROWS, WIDE):
                    s[i, j] = s[i, j] * 2
                T.copy(s, C[0, k * WIDE])

    return masked


@pytest.mark.parametrize("way", ["in place", "nested", "another product"])
@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize(("first", "at"), [(10, 0), (0, 1), (64, 0), (7, 9)])
def test_a_product_that_a_branch_changes(way: str, stages: int, first: int, at: int) -> None:
    tiles = 4
    a = RNG.standard_normal((ROWS, DEEP)).astype(np.float16)
    b = RNG.standard_normal((tiles * WIDE, DEEP)).astype(np.float16)
    kernel = masked(tiles, stages, way)
    found = kernel(a, b, np.array([first, at, 0, 0], np.int32))
    expected = _product(a, b)
    if way == "another product":
        kept = expected.copy()
        expected *= 2
        if at < tiles:
            expected[:, at * WIDE:(at + 1) * WIDE] = kept[:, at * WIDE:(at + 1) * WIDE]
    if at < tiles:
        expected[:, at * WIDE + first:(at + 1) * WIDE] = -1
    np.testing.assert_allclose(found, expected * 2, rtol=1e-5, atol=1e-4)
    assert not kernel.last_launch.hazards


@tilelang.jit(out_idx=[-1], target="npuir")
def product_or_sum():
    """One branch multiplies, the other one adds: the result of either is read after them."""

    @T.prim_func
    def product_or_sum(
        A: T.Tensor((ROWS, DEEP), "float16"), B: T.Tensor((WIDE, DEEP), "float16"), D: T.Tensor((ROWS, WIDE), "float32"),
        S: T.Tensor((4,), "int32"), C: T.Tensor((ROWS, WIDE), "float32"),
    ):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((ROWS, DEEP), "float16")
            b = T.alloc_shared((WIDE, DEEP), "float16")
            d = T.alloc_shared((ROWS, WIDE), "float32")
            s = T.alloc_fragment((ROWS, WIDE), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(D, d)
            if S[0] > 0:
                T.gemm(a, b, s, transpose_B=True, clear_accum=True)
            else:
                for i, j in T.Parallel(ROWS, WIDE):
                    s[i, j] = d[i, j] + 1
            for i, j in T.Parallel(ROWS, WIDE):
                s[i, j] = s[i, j] * d[i, j]
            T.copy(s, C)

    return product_or_sum


@pytest.mark.parametrize("multiply", [0, 1])
def test_branches_that_leave_it_in_memories_of_two_cores(multiply: int) -> None:
    a = RNG.standard_normal((ROWS, DEEP)).astype(np.float16)
    b = RNG.standard_normal((WIDE, DEEP)).astype(np.float16)
    d = RNG.standard_normal((ROWS, WIDE)).astype(np.float32)
    kernel = product_or_sum()
    found = kernel(a, b, d, np.array([multiply, 0, 0, 0], np.int32))
    np.testing.assert_allclose(found, (_product(a, b) if multiply else d + 1) * d, rtol=1e-5, atol=1e-4)
    assert not kernel.last_launch.hazards


@tilelang.jit(out_idx=[-1], target="npuir")
def twice(rounds):
    """One accumulator for two purposes: a loop that may not run leaves it in UB, and one that begins anew in L0C."""

    @T.prim_func
    def twice(
        A: T.Tensor((ROWS, 4 * DEEP), "float16"), B: T.Tensor((WIDE, 4 * DEEP), "float16"), S: T.Tensor((4,), "int32"),
        C: T.Tensor((ROWS, WIDE), "float32"), D: T.Tensor((rounds, ROWS, WIDE), "float32"),
    ):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((ROWS, DEEP), "float16")
            b = T.alloc_shared((WIDE, DEEP), "float16")
            c = T.alloc_fragment((ROWS, WIDE), "float32")
            T.clear(c)
            for k in T.Pipelined(S[0], num_stages=2):
                T.copy(A[0, k * DEEP], a)
                T.copy(B[0, k * DEEP], b)
                T.gemm(a, b, c, transpose_B=True)
            for i, j in T.Parallel(ROWS, WIDE):
                T.atomic_add(C[i, j], c[i, j])
            for p in T.serial(rounds):
                T.clear(c)
                for k in T.Pipelined(p + 1, num_stages=1):
                    T.copy(A[0, k * DEEP], a)
                    T.copy(B[0, k * DEEP], b)
                    T.gemm(a, b, c, transpose_B=True)
                T.copy(c, D[p, 0, 0])

    return twice


@pytest.mark.parametrize("parts", [0, 1, 4])
def test_a_loop_that_initialises_a_buffer_needs_no_value_from_before(parts: int) -> None:
    a = RNG.standard_normal((ROWS, 4 * DEEP)).astype(np.float16)
    b = RNG.standard_normal((WIDE, 4 * DEEP)).astype(np.float16)
    kernel, held = twice(3), np.full((ROWS, WIDE), 2.0, np.float32)
    found = kernel(a, b, np.array([parts, 0, 0, 0], np.int32), held)

    def product(parts: int) -> np.ndarray[Any, Any]:
        return _product(a[:, :parts * DEEP], b[:, :parts * DEEP])

    np.testing.assert_allclose(held, 2 + product(parts), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(found, [product(count + 1) for count in range(3)], rtol=1e-5, atol=1e-4)
    assert not kernel.last_launch.hazards
