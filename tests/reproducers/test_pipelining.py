"""A pipelined loop gives the results of the serial one: over any range, with atomics, conditions from tables, shared tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu.language as T
from reproducers.kernels import AUTO, BOTH, ORDERS, compiled, holds, refused
from tilelang_npu.simulator import Launch

N = 64
M = 16
RNG = np.random.default_rng(0)


def visited(start: int, stop: int, stages: int) -> Any:
    """A loop over both cores that leaves a mark for each of its iterations."""
    @T.prim_func
    def main(A: T.Tensor((8 * M, M), "float16"), C: T.Tensor((8 * M, M), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((M, M), "float16")
            c = T.alloc_L0C((M, M), "float32")
            x = T.alloc_ub((M, M), "float32")
            for i in T.Pipelined(start, stop, num_stages=stages):
                T.copy(A[i * M, 0], a)
                T.gemm_v0(a, a, c, init=True)
                T.copy(c, x)
                T.tile.add(x, x, 1.0)
                T.copy(x, C[i * M, 0])

    return main


@pytest.mark.parametrize(("start", "stop", "stages"), [(0, 3, 2), (0, 2, 3), (2, 6, 2), (2, 6, 4), (0, 8, 3), (5, 6, 2)])
def test_every_iteration_runs_once(start: int, stop: int, stages: int) -> None:
    a = RNG.integers(-3, 4, (8 * M, M)).astype(np.float16)
    expected = np.zeros((8 * M, M), np.float32)
    for i in range(start, stop):
        tile = a[i * M:(i + 1) * M].astype(np.float32)
        expected[i * M:(i + 1) * M] = tile @ tile + 1
    kernel = compiled(visited(start, stop, stages), BOTH)
    for order in (None, *ORDERS):
        c = np.zeros((8 * M, M), np.float32)
        launch = Launch(kernel.program.run(kernel.machine_arguments(kernel.signature.bind([a, c])), blocks=1, schedule=order))
        np.testing.assert_array_equal(c, expected)
        assert launch.hazards == []


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_a_range_known_when_it_runs(count: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((8, N), "float32"), B: T.Tensor((8, N), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((N,), "float32")
            for i in T.Pipelined(n, num_stages=3):
                T.copy(A[i, :], x)
                T.tile.add(x, x, x)
                T.copy(x, B[i, :])

    a = RNG.random((8, N)).astype(np.float32)
    kernel = compiled(main, AUTO)
    for order in (None, *ORDERS):
        b = np.zeros_like(a)
        kernel.program.run([a, b, count], blocks=1, schedule=order)
        np.testing.assert_array_equal(b[:count], 2 * a[:count])
        assert not b[count:].any()


def test_the_second_number_is_where_it_stops() -> None:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((N,), "float32")
            T.copy(A, x)
            for _i in T.Pipelined(4, 2):
                T.tile.add(x, x, 1.0)
            T.copy(x, A)

    error = refused(main, AUTO)
    assert error.code == "T150" and "num_stages=2" in error.help


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_an_atomic_sum_and_a_load_of_it(stages: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((6, N), "float32"), S: T.Tensor((N,), "float32"), B: T.Tensor((6, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x, y = T.alloc_ub((N,), "float32"), T.alloc_ub((N,), "float32")
            if vid == 0:
                for i in T.Pipelined(6, num_stages=stages):
                    T.copy(A[i, :], x)
                    T.tile.atomic_add(S, x)
                    T.copy(S, y)
                    T.copy(y, B[i, :])

    a = RNG.integers(-9, 10, (6, N)).astype(np.float32)
    holds(compiled(main, AUTO), [a, np.zeros(N, np.float32), np.zeros_like(a)], [a.sum(0), a.cumsum(0)])


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_blocks_skipped_by_a_table(stages: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((8, N), "float32"), table: T.Tensor((8,), "int32"), B: T.Tensor((8, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((N,), "float32")
            for i in T.Pipelined(8, num_stages=stages):
                if table[i] > 0:
                    T.copy(A[i, :], x)
                    T.tile.add(x, x, x)
                    T.copy(x, B[i, :])

    a, table = RNG.random((8, N)).astype(np.float32), np.array([1, 0, 0, 2, 1, 0, 3, 1], np.int32)
    kernel = compiled(main, AUTO)
    for order in (None, *ORDERS):
        b = np.zeros_like(a)
        launch = Launch(kernel.program.run([a, table, b], blocks=1, schedule=order))
        np.testing.assert_array_equal(b, np.where(table[:, None] > 0, 2 * a, 0))
        assert launch.hazards == []


@pytest.mark.parametrize("stages", [(1, 1), (2, 4), (4, 2)])
def test_two_loops_share_tiles_at_different_depths(stages: tuple[int, int]) -> None:
    one, two = stages

    @T.prim_func
    def main(A: T.Tensor((7, N), "float32"), B: T.Tensor((7, N), "float32"), C: T.Tensor((7, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((N,), "float32")
            for i in T.Pipelined(7, num_stages=one):
                T.copy(A[i, :], x)
                T.tile.add(x, x, x)
                T.copy(x, B[i, :])
            for i in T.Pipelined(7, num_stages=two):
                T.copy(A[i, :], x)
                T.tile.mul(x, x, x)
                T.copy(x, C[i, :])

    a = RNG.random((7, N)).astype(np.float32)
    holds(compiled(main, AUTO), [a, np.zeros_like(a), np.zeros_like(a)], [a + a, a * a])


@pytest.mark.parametrize("split", [False, True])
def test_a_range_in_two_parts(split: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((M, 4 * M), "float16"), C: T.Tensor((M, M), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((M, M), "float16")
            c = T.alloc_L0C((M, M), "float32")
            if split:
                for k in T.Pipelined(0, 1, num_stages=2):
                    T.copy(A[0, k * M], a)
                    T.gemm_v0(a, a, c, init=True)
                for k in T.Pipelined(1, 4, num_stages=2):
                    T.copy(A[0, k * M], a)
                    T.gemm_v0(a, a, c, init=False)
            else:
                for k in T.Pipelined(4, num_stages=2):
                    T.copy(A[0, k * M], a)
                    T.gemm_v0(a, a, c, init=(k == 0))
            T.copy(c, C)

    a = RNG.integers(-3, 4, (M, 4 * M)).astype(np.float16)
    parts = [part.astype(np.float32) for part in np.split(a, 4, axis=1)]
    holds(compiled(main, AUTO), [a, np.zeros((M, M), np.float32)], [sum(part @ part for part in parts)])
