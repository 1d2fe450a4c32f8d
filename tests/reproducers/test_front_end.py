"""Every statement of a kernel has an effect or is an error: Python's conditions, variables, break, partial indices, selects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu.language as T
from reproducers.kernels import AUTO, compiled, holds, refused

N = 64
RNG = np.random.default_rng(0)
CAUSAL = True


def masked(causal: bool, python: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((8, N), "float32"), B: T.Tensor((8, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((N,), "float32")
            for i in T.serial(8):
                T.copy(A[i, :], x)
                if (causal if python else CAUSAL) and i % 2 == 1:
                    T.tile.fill(x, 0.0)
                T.copy(x, B[i, :])

    return main


@pytest.mark.parametrize("causal", [False, True])
def test_a_condition_of_python_and_of_the_kernel(causal: bool) -> None:
    a = RNG.random((8, N)).astype(np.float32)
    odd = np.where(np.arange(8)[:, None] % 2 == 1, 0, a).astype(np.float32)
    holds(compiled(masked(causal, True), AUTO), [a, np.zeros_like(a)], [odd if causal else a])
    holds(compiled(masked(causal, False), AUTO), [a, np.zeros_like(a)], [odd])


def test_a_running_number_needs_a_variable() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, N), "float32"), counts: T.Tensor((4,), "int32"), B: T.Tensor((8, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((N,), "float32")
            at = T.alloc_var("int32", init=0)
            for i in T.serial(4):
                for _j in T.serial(counts[i]):
                    T.copy(A[at, :], x)
                    T.tile.add(x, x, T.cast(i, "float32"))
                    T.copy(x, B[at, :])
                    at = at + 1

    a, counts = RNG.random((8, N)).astype(np.float32), np.array([2, 0, 5, 1], np.int32)
    added = np.repeat(np.arange(4), counts).astype(np.float32)
    holds(compiled(main, AUTO), [a, counts, np.zeros_like(a)], [a + added[:, None]])


def test_a_number_that_left_its_loop() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, N), "float32"), B: T.Tensor((8, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((N,), "float32")
            for i in T.serial(4):
                last = i * 2
                T.copy(A[last, :], x)
            T.copy(x, B[last, :])

    assert refused(main, AUTO).code == "T142"


@pytest.mark.parametrize("end", [0, 3, 99])
def test_break_and_continue(end: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((8, N), "float32"), B: T.Tensor((8, N), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((N,), "float32")
            for i in T.serial(8):
                if i == n:
                    break
                if i == 1:
                    continue
                T.copy(A[i, :], x)
                T.tile.add(x, x, x)
                T.copy(x, B[i, :])

    a = RNG.random((8, N)).astype(np.float32)
    kernel = compiled(main, AUTO)
    for order in (None, "late", "early"):
        b = np.zeros_like(a)
        kernel.program.run([a, b, end], blocks=1, schedule=order)
        rows = [i for i in range(min(end, 8)) if i != 1]
        np.testing.assert_array_equal(b[rows], 2 * a[rows])
        assert not np.delete(b, rows, axis=0).any()


def test_break_out_of_a_parallel_loop() -> None:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((N,), "float32")
            T.copy(A, x)
            for i in T.Parallel(N):
                if i == 3:
                    break
                x[i] = 0.0
            T.copy(x, A)

    assert refused(main, AUTO).code == "T141"


@pytest.mark.parametrize("whole", [False, True])
def test_a_row_by_one_index(whole: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, N), "float32"), B: T.Tensor((4, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            w = T.alloc_ub((4, N), "float32")
            T.copy(A, w)
            if whole:
                T.tile.add(w[0, :], w[1, :], w[2, :])
            else:
                T.tile.add(w[0], w[1], w[2])
            T.copy(w, B)

    a = RNG.random((4, N)).astype(np.float32)
    expected = a.copy()
    expected[0] = a[1] + a[2]
    holds(compiled(main, AUTO), [a, np.zeros_like(a)], [expected])


@pytest.mark.parametrize("n", [0, 7])
def test_a_choice_that_is_stored(n: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((N,), "float32")
            v = T.alloc_var("int32", init=0)
            T.copy(A, x)
            v = T.if_then_else(n > 3, 5, 9)
            for i in T.serial(8):
                x[i] = T.if_then_else(i < v, x[i] + 1.0, -1.5)
            T.copy(x, B)

    a = RNG.random(N).astype(np.float32)
    expected = a.copy()
    expected[:8] = np.where(np.arange(8) < (5 if n > 3 else 9), a[:8] + 1, -1.5)
    kernel = compiled(main, AUTO)
    for order in (None, "late", "early"):
        b = np.zeros_like(a)
        kernel.program.run([a, b, n], blocks=1, schedule=order)
        np.testing.assert_array_equal(b, expected)
