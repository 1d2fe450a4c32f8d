"""Between Cube and Vector: switches, flags by hand together with automatic ones, trip counts, and deadlocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu.language as T
from reproducers.kernels import AUTO, BOTH, HAND, ORDERS, compiled, holds, refused, reported
from tilelang_npu import TileError
from tilelang_npu.simulator import Launch

M = 32
RNG = np.random.default_rng(0)


def operands(tiles: int) -> tuple[Any, Any]:
    """Tiles of small integers, so that sums are exact, and their products with themselves."""
    a = RNG.integers(-3, 4, (tiles * M, M)).astype(np.float16)
    products = [part.astype(np.float32) @ part.astype(np.float32) for part in np.split(a, tiles)]
    return a, np.concatenate(products)


def handed_over(name: str, flag: bool) -> Any:
    """Cube writes a scratch tensor, Vector reads it; the name of the scratch tensor means nothing."""
    @T.prim_func
    def main(A: T.Tensor((M, M), "float16"), scratch: T.Tensor((M, M), "float32"), C: T.Tensor((M, M), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((M, M), "float16")
            c = T.alloc_L0C((M, M), "float32")
            x = T.alloc_ub((M // 2, M), "float32")
            T.copy(A, a)
            T.gemm_v0(a, a, c, init=True)
            T.copy(c, scratch)
            if flag:
                with T.Scope("C"):
                    T.set_cross_flag("FIX", 0)
                with T.Scope("V"):
                    T.wait_cross_flag(0)
            T.copy(scratch[vid * (M // 2), 0], x)
            T.tile.add(x, x, x)
            T.copy(x, C[vid * (M // 2), 0])

    return main


def test_a_hand_over_through_a_tensor_of_any_name() -> None:
    a, product = operands(1)
    scratch, zero = np.zeros((2, M, M), np.float32)
    holds(compiled(handed_over("scratch", False), BOTH), [a, scratch, zero], [2 * product])


def test_flags_without_splitting_and_flags_by_hand_with_automatic_ones_are_errors() -> None:
    lonely = {**AUTO, "tl.ascend_auto_cross_core_sync": True, "tl.ascend_auto_cv_combine": False}
    with pytest.raises(TileError) as caught:
        compiled(handed_over("scratch", False), lonely).mlir()
    assert caught.value.code == "T720", str(caught.value)
    assert refused(handed_over("scratch", True), BOTH).code == "T246"


def test_without_any_flag_it_is_a_race() -> None:
    a, _ = operands(1)
    kernel = compiled(handed_over("scratch", False), {**AUTO, "tl.ascend_auto_cv_combine": True})
    found = reported(kernel, a, *np.zeros((2, M, M), np.float32))
    print(found)
    assert found == [("S202", "RAW", "scratch")]


def in_steps(cube: int, vector: int) -> Any:
    """The Cube core sends one tile in each of ``cube`` iterations; the Vector core receives them in ``vector`` iterations, with
explicit flags."""
    @T.prim_func
    def main(A: T.Tensor((4 * M, M), "float16"), W: T.Tensor((4 * M, M), "float32"), C: T.Tensor((4 * M, M), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((M, M), "float16")
            c = T.alloc_L0C((M, M), "float32")
            x = T.alloc_ub((M // 2, M), "float32")
            with T.Scope("C"):
                for i in T.serial(cube):
                    T.copy(A[i * M, 0], a)
                    T.barrier_all()
                    T.gemm_v0(a, a, c, init=True)
                    T.barrier_all()
                    T.copy(c, W[i * M, 0])
                    T.set_cross_flag("FIX", 0)
                    T.barrier_all()
            with T.Scope("V"):
                for i in T.serial(vector):
                    T.wait_cross_flag(0)
                    T.copy(W[i * M + vid * (M // 2), 0], x)
                    T.barrier_all()
                    T.copy(x, C[i * M + vid * (M // 2), 0])
                    T.barrier_all()

    return main


def test_loops_of_different_lengths_around_a_hand_over() -> None:
    a, product = operands(4)
    w, c = np.zeros((2, 4 * M, M), np.float32)
    holds(compiled(in_steps(4, 4), HAND), [a, w, c], [product])
    assert ("S211", "flag", "") in reported(compiled(in_steps(4, 2), HAND), a, w, c)
    with pytest.raises(TileError) as caught:
        compiled(in_steps(2, 4), HAND)(a, w, c)
    assert caught.value.code == "S302" and "flag 0" in str(caught.value)


def test_the_compiler_hands_over_in_loops_of_runtime_length() -> None:
    @T.prim_func
    def main(A: T.Tensor((4 * M, M), "float16"), C: T.Tensor((4 * M, M), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((M, M), "float16")
            c = T.alloc_L0C((M, M), "float32")
            x = T.alloc_ub((M, M), "float32")
            for i in T.serial(n):
                T.copy(A[i * M, 0], a)
                T.gemm_v0(a, a, c, init=True)
                T.copy(c, x)
                T.tile.add(x, x, x)
                T.copy(x, C[i * M, 0])

    a, product = operands(4)
    kernel = compiled(main, BOTH)
    for n in (0, 1, 3, 4):
        for order in (None, *ORDERS):
            c = np.zeros((4 * M, M), np.float32)
            launch = Launch(kernel.program.run(kernel.machine_arguments(kernel.signature.bind([a, c, n])), blocks=1,
                                               schedule=order))
            assert launch.hazards == []
            np.testing.assert_array_equal(c[:n * M], 2 * product[:n * M])
            assert not c[n * M:].any()


def test_a_barrier_that_not_all_cores_reach() -> None:
    @T.prim_func
    def main(B: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, is_npu=True) as (cid, vid), T.Scope("V"):
            x = T.alloc_ub((64,), "float32")
            T.tile.fill(x, 1.0)
            if cid < 2:
                T.sync_all()
            T.barrier_all()
            T.copy(x, B[cid, :])

    with pytest.raises(TileError) as caught:
        compiled(main, HAND)(np.zeros((4, 64), np.float32))
    assert caught.value.code == "S303", str(caught.value)


def counted(sets: int, waits: int) -> Any:
    @T.prim_func
    def main(B: T.Tensor((2, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            with T.Scope("C"):
                for _i in T.serial(sets):
                    T.set_cross_flag("FIX", 3)
            with T.Scope("V"):
                for _i in T.serial(waits):
                    T.wait_cross_flag(3)
                T.tile.fill(x, 1.0)
                T.barrier_all()
                T.copy(x, B[vid, :])

    return main


@pytest.mark.parametrize(("sets", "waits", "code"), [(2, 2, None), (15, 15, None), (16, 16, "S213"), (2, 1, "S211"),
                                                     (1, 2, "S302")])
def test_a_flag_counts_to_fifteen(sets: int, waits: int, code: str | None) -> None:
    kernel, b = compiled(counted(sets, waits), HAND), np.zeros((2, 64), np.float32)
    if code == "S302":
        with pytest.raises(TileError) as caught:
            kernel(b)
        assert caught.value.code == code
    elif code is None:
        holds(kernel, [b], [np.ones_like(b)])
    else:
        assert {found for found, _, _ in reported(kernel, b)} == {code}


def preloaded(depth: int, free: int) -> Any:
    """Cube runs ``depth`` tiles ahead of Vector in a ring of ``free`` slots, by hand."""
    @T.prim_func
    def main(A: T.Tensor((8 * M, M), "float16"), W: T.Tensor((free * M, M), "float32"), C: T.Tensor((8 * M, M), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((M, M), "float16")
            c = T.alloc_L0C((M, M), "float32")
            x = T.alloc_ub((M // 2, M), "float32")
            with T.Scope("C"):
                for i in T.serial(8):
                    T.copy(A[i * M, 0], a)
                    T.barrier_all()
                    T.gemm_v0(a, a, c, init=True)
                    T.barrier_all()
                    if i >= free:
                        T.wait_cross_flag(1)
                    T.copy(c, W[i % free * M, 0])
                    T.barrier_all()
                    if i >= depth - 1:
                        T.set_cross_flag("FIX", 0)
                for _i in T.serial(depth - 1):
                    T.set_cross_flag("FIX", 0)
                for _i in T.serial(free):
                    T.wait_cross_flag(1)
            with T.Scope("V"):
                for i in T.serial(8):
                    T.wait_cross_flag(0)
                    T.copy(W[i % free * M + vid * (M // 2), 0], x)
                    T.set_cross_flag("MTE2", 1)
                    T.barrier_all()
                    T.copy(x, C[i * M + vid * (M // 2), 0])
                    T.barrier_all()

    return main


@pytest.mark.parametrize(("depth", "free"), [(2, 2), (4, 4), (4, 8)])
def test_a_preload_that_its_ring_holds(depth: int, free: int) -> None:
    a, product = operands(8)
    holds(compiled(preloaded(depth, free), HAND), [a, np.zeros((free * M, M), np.float32), np.zeros((8 * M, M), np.float32)],
          [product])


@pytest.mark.parametrize(("depth", "free"), [(4, 2), (3, 2)])
def test_a_preload_deeper_than_its_ring_is_explained(depth: int, free: int) -> None:
    a, _ = operands(8)
    with pytest.raises(TileError) as caught:
        compiled(preloaded(depth, free), HAND)(a, np.zeros((free * M, M), np.float32), np.zeros((8 * M, M), np.float32))
    assert caught.value.code == "S301"
    assert "AIC" in str(caught.value) and "AIV" in str(caught.value) and "flag 0" in str(caught.value)
