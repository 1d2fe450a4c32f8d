"""Separate loops for each core: the k-th iteration of one exchanges data with the k-th of the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError

N, STEPS = 32, 3
AUTO = {"tl.ascend_auto_cv_combine": True, "tl.ascend_auto_cross_core_sync": True, "tl.ascend_auto_sync": True,
        "tl.ascend_memory_planning": True}
BLOCKS = 2


def attention_like(form: str, vector_steps: int = STEPS, stages: tuple[int, int] = (0, 0), between: str = "") -> Any:
    """S = A[k] @ B, P = max(S, 0) by the Vector core, O += P @ B: back and forth in every iteration, without flags.

    ``form``: the Cube loop first, the Vector loop first, or both in one loop.
    """

    @T.prim_func
    def main(A: T.Tensor((STEPS, N, N), "float16"), B: T.Tensor((N, N), "float16"), O: T.Tensor((BLOCKS, N, N), "float32"),
             s_ws: T.Tensor((BLOCKS, N, N), "float32"), p_ws: T.Tensor((BLOCKS, N, N), "float16"),
             o_ws: T.Tensor((BLOCKS, N, N), "float32")):
        with T.Kernel(BLOCKS, is_npu=True) as (cid, vid):
            a, b, p = T.alloc_L1((N, N), "float16"), T.alloc_L1((N, N), "float16"), T.alloc_L1((N, N), "float16")
            s_l0c, o_l0c = T.alloc_L0C((N, N), "float32"), T.alloc_L0C((N, N), "float32")
            s_ub, half = T.alloc_ub((N // 2, N), "float32"), T.alloc_ub((N // 2, N), "float16")
            part, total = T.alloc_ub((N // 2, N), "float32"), T.alloc_ub((N // 2, N), "float32")
            row = vid * (N // 2)
            if form == "cube first":
                T.copy(B, b)
                for k in T.Pipelined(STEPS, num_stages=stages[0]) if stages[0] else T.serial(STEPS):
                    T.copy(A[k, 0, 0], a)
                    T.gemm_v0(a, b, s_l0c, init=True)
                    T.copy(s_l0c, s_ws[cid, :, :])
                    T.copy(p_ws[cid, :, :], p)
                    T.gemm_v0(p, b, o_l0c, init=True)
                    T.copy(o_l0c, o_ws[cid, :, :])
            if between == "reads the first":
                T.copy(o_ws[cid, row, 0], part)
            T.tile.fill(total, 0.0)
            if form == "one loop":
                T.copy(B, b)
                for k in T.serial(STEPS):
                    T.copy(A[k, 0, 0], a)
                    T.gemm_v0(a, b, s_l0c, init=True)
                    T.copy(s_l0c, s_ws[cid, :, :])
                    T.copy(s_ws[cid, row, 0], s_ub)
                    T.tile.relu(s_ub, s_ub)
                    T.copy(s_ub, half)
                    T.copy(half, p_ws[cid, row, 0])
                    T.copy(p_ws[cid, :, :], p)
                    T.gemm_v0(p, b, o_l0c, init=True)
                    T.copy(o_l0c, o_ws[cid, :, :])
                    T.copy(o_ws[cid, row, 0], part)
                    T.tile.add(total, total, part)
            else:
                for _k in T.Pipelined(vector_steps, num_stages=stages[1]) if stages[1] else T.serial(vector_steps):
                    T.copy(s_ws[cid, row, 0], s_ub)
                    T.tile.relu(s_ub, s_ub)
                    T.copy(s_ub, half)
                    for r in T.serial(N // 2):
                        T.copy(half[r, :], p_ws[cid, row + r, :])
                    T.copy(o_ws[cid, row, 0], part)
                    T.tile.add(total, total, part)
            if form == "vector first":
                T.copy(B, b)
                for k in T.serial(STEPS):
                    T.copy(A[k, 0, 0], a)
                    T.gemm_v0(a, b, s_l0c, init=True)
                    T.copy(s_l0c, s_ws[cid, :, :])
                    T.copy(p_ws[cid, :, :], p)
                    T.gemm_v0(p, b, o_l0c, init=True)
                    T.copy(o_l0c, o_ws[cid, :, :])
            T.copy(total, O[cid, row, 0])

    return main


def one_way(steps: int = STEPS, *, by_step: bool = False) -> Any:
    """The Cube core's loop sends products, the Vector core's adds them up: through one buffer, or one for each iteration."""
    slots = STEPS if by_step else 1

    @T.prim_func
    def main(A: T.Tensor((STEPS, N, N), "float16"), B: T.Tensor((N, N), "float16"), O: T.Tensor((N, N), "float32"),
             ws: T.Tensor((slots, N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a, b, acc = T.alloc_L1((N, N), "float16"), T.alloc_L1((N, N), "float16"), T.alloc_L0C((N, N), "float32")
            part, total = T.alloc_ub((N // 2, N), "float32"), T.alloc_ub((N // 2, N), "float32")
            T.copy(B, b)
            for k in T.serial(STEPS):
                T.copy(A[k, 0, 0], a)
                T.gemm_v0(a, b, acc, init=True)
                T.copy(acc, ws[k if by_step else 0, :, :])
            T.tile.fill(total, 0.0)
            for k in T.serial(steps):
                T.copy(ws[k if by_step else 0, vid * (N // 2), 0], part)
                T.tile.add(total, total, part)
            T.copy(total, O[vid * (N // 2), 0])

    return main


def compiled(function: Any, workspaces: list[int]) -> Any:
    return tilelang.compile(function, out_idx=[2], workspace_idx=workspaces, target="ascendc", pass_configs=AUTO)


def inputs(rng: np.random.Generator) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return rng.standard_normal((STEPS, N, N)).astype(np.float16), rng.standard_normal((N, N)).astype(np.float16)


@pytest.mark.parametrize("form", ["cube first", "vector first", "one loop"])
def test_back_and_forth(form: str, rng: np.random.Generator) -> None:
    a, b = inputs(rng)
    expected = np.zeros((N, N), np.float32)
    for step in range(STEPS):
        p = np.maximum(a[step].astype(np.float32) @ b.astype(np.float32), 0).astype(np.float16)
        expected += p.astype(np.float32) @ b.astype(np.float32)
    kernel = compiled(attention_like(form), [3, 4, 5])
    np.testing.assert_allclose(kernel(a, b), np.broadcast_to(expected, (BLOCKS, N, N)), rtol=1e-3, atol=1e-3)
    assert not kernel.last_launch.hazards
    np.testing.assert_array_equal(kernel(a, b), compiled(attention_like("one loop"), [3, 4, 5])(a, b))


@pytest.mark.parametrize("by_step", [False, True], ids=["one place", "a place for each"])
def test_one_way(by_step: bool, rng: np.random.Generator) -> None:
    a, b = inputs(rng)
    expected = sum(a[step].astype(np.float32) @ b.astype(np.float32) for step in range(STEPS))
    kernel = compiled(one_way(by_step=by_step), [3])
    np.testing.assert_allclose(kernel(a, b), expected, rtol=1e-4, atol=1e-4)
    assert not kernel.last_launch.hazards


def test_same_through_pipelined_loops(rng: np.random.Generator) -> None:
    a, b = inputs(rng)
    serial, pipelined = (compiled(attention_like("cube first", stages=stages), [3, 4, 5])(a, b) for stages in ((0, 0), (2, 2)))
    np.testing.assert_array_equal(serial, pipelined)


@pytest.mark.parametrize(("function", "message"), [
    (lambda: attention_like("cube first", vector_steps=STEPS - 1), "do not surely run over the same range"),
    (lambda: attention_like("cube first", stages=(2, 3)), "2 stages and the loop at line .* has 3"),
    (lambda: attention_like("cube first", between="reads the first"), "depends on the first"),
])
def test_refused(function: Any, message: str) -> None:
    with pytest.raises(TileError, match=message) as caught:
        compiled(function(), [3, 4, 5])
    assert caught.value.code == "T205"
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


@pytest.mark.parametrize("loops", [1, 2])
def test_an_input_is_no_channel(loops: int, rng: np.random.Generator) -> None:
    """A tensor that the caller passes holds values from the start: reading a tile before writing it means those."""

    @T.prim_func
    def main(X: T.Tensor((STEPS, N, N), "float16"), B: T.Tensor((N, N), "float16"), O: T.Tensor((STEPS, N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a, b, acc = T.alloc_L1((N, N), "float16"), T.alloc_L1((N, N), "float16"), T.alloc_L0C((N, N), "float32")
            half = T.alloc_ub((N // 2, N), "float16")
            T.copy(B, b)
            for k in T.serial(STEPS):
                T.copy(X[k, 0, 0], a)
                T.gemm_v0(a, b, acc, init=True)
                T.copy(acc, O[k, 0, 0])
                if loops == 1:
                    T.tile.fill(half, 1.0)
                    T.copy(half, X[k, vid * (N // 2), 0])
            if loops == 2:
                for k in T.serial(STEPS):
                    T.tile.fill(half, 1.0)
                    T.copy(half, X[k, vid * (N // 2), 0])

    x, b = inputs(rng)
    expected = x.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(compiled(main, [])(x, b), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(x, np.ones((STEPS, N, N), np.float16))


def test_a_state_is_no_channel(rng: np.random.Generator) -> None:
    """The new value needs the old one: the Cube core reads the value of the previous iteration, or of the caller."""

    @T.prim_func
    def main(H: T.Tensor((N, N), "float16"), B: T.Tensor((N, N), "float16"), O: T.Tensor((N, N), "float32"),
             ws: T.Tensor((N, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a, b, acc = T.alloc_L1((N, N), "float16"), T.alloc_L1((N, N), "float16"), T.alloc_L0C((N, N), "float32")
            wide, half = T.alloc_ub((N // 2, N), "float32"), T.alloc_ub((N // 2, N), "float16")
            T.copy(B, b)
            for _k in T.serial(STEPS):
                T.copy(H, a)
                T.gemm_v0(a, b, acc, init=True)
                T.copy(acc, ws)
                T.copy(ws[vid * (N // 2), 0], wide)
                T.tile.relu(wide, wide)
                T.copy(wide, half)
                T.copy(half, H[vid * (N // 2), 0])
            T.copy(wide, O[vid * (N // 2), 0])

    h, b = rng.standard_normal((N, N)).astype(np.float16), (rng.standard_normal((N, N)) / N).astype(np.float16)
    expected = h
    for _ in range(STEPS):
        wide = np.maximum(expected.astype(np.float32) @ b.astype(np.float32), 0)
        expected = wide.astype(np.float16)
    np.testing.assert_allclose(compiled(main, [3])(h, b), wide, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(h.astype(np.float32), expected.astype(np.float32), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("form", ["cube first", "vector first", "one loop"])
def test_passed_by_the_caller(form: str, rng: np.random.Generator) -> None:
    """A buffer that every iteration overwrites is a channel, also if the caller allocated it."""
    a, b = inputs(rng)
    passed = [np.full((BLOCKS, N, N), np.nan, dtype) for dtype in (np.float32, np.float16, np.float32)]
    np.testing.assert_array_equal(compiled(attention_like(form), [])(a, b, *passed),
                                  compiled(attention_like(form), [3, 4, 5])(a, b))
