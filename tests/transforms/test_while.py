"""``while`` loops: loop-carried dependences are synchronised, inside a core and between the cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

AUTOMATIC = dict.fromkeys((
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC, tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC, tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING), True)
STEPS = 4


def run(function: Any, *arguments: Any, target: str = "ascendc") -> None:
    kernel = tilelang.compile(function, target=target, pass_configs=AUTOMATIC if target == "ascendc" else None)
    kernel(*arguments)
    assert not kernel.last_launch.hazards, "\n".join(map(str, kernel.last_launch.hazards))


@T.prim_func
def through_a_tensor(A: T.Tensor((32, 32), "float16"), B: T.Tensor((128, 32), "float16"), W: T.Tensor((32, 32), "float32"),
                     S: T.Tensor((STEPS,), "int32"), C: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        a = T.alloc_L1((32, 32), "float16")
        b = T.alloc_L1((32, 32), "float16")
        c = T.alloc_L0C((32, 32), "float32")
        part = T.alloc_ub((16, 32), "float32")
        total = T.alloc_ub((16, 32), "float32")
        step = T.alloc_var("int32", init=0)
        T.copy(A, a)
        T.tile.fill(total, 0.0)
        while step < STEPS:
            step += 1
            if S[step - 1] == 0:
                continue
            T.copy(B[(step - 1) * 32, 0], b)
            T.gemm_v0(a, b, c, transpose_B=True, init=True)
            T.copy(c, W)
            T.copy(W[vid * 16, 0], part)
            T.tile.add(total, total, part)
            if S[step - 1] < 0:
                break
        T.copy(total, C[vid * 16, 0])


@T.prim_func
def through_the_workspace(A: T.Tensor((32, 32), "float16"), B: T.Tensor((128, 32), "float16"), W: T.Tensor((32, 32), "float32"),
                          S: T.Tensor((STEPS,), "int32"), C: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, is_npu=True, threads=2) as (cid):
        a = T.alloc_shared((32, 32), "float16")
        b = T.alloc_shared((32, 32), "float16")
        c = T.alloc_fragment((32, 32), "float32")
        part = T.alloc_shared((32, 32), "float32")
        total = T.alloc_shared((32, 32), "float32")
        step = T.alloc_var("int32", init=0)
        T.copy(A, a)
        T.tile.fill(total, 0.0)
        while step < STEPS:
            step += 1
            if S[step - 1] == 0:
                continue
            T.copy(B[(step - 1) * 32, 0], b)
            T.gemm_v0(a, b, c, transpose_B=True, init=True)
            T.copy(c, part)
            T.tile.add(total, total, part)
            if S[step - 1] < 0:
                break
        T.copy(total, C)


@pytest.mark.parametrize("function", [through_a_tensor, through_the_workspace], ids=lambda one: one.function.__name__)
@pytest.mark.parametrize("steps", [[1, 1, 1, 1], [1, 0, 1, -1], [-1, 1, 1, 1], [0, 0, 0, 0]], ids=str)
def test_cube_and_vector_take_turns(function: Any, steps: list[int]) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((32, 32), (128, 32)))
    c, w = np.full((32, 32), 7, np.float32), np.zeros((32, 32), np.float32)
    run(function, a, b, w, np.array(steps, np.int32), c)
    total = np.zeros((32, 32), np.float32)
    for step, word in enumerate(steps):
        if word:
            total += a.astype(np.float32) @ b[step * 32:step * 32 + 32].astype(np.float32).T
        if word < 0:
            break
    np.testing.assert_array_equal(c, total)


@T.prim_func
def halved(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, _):
        x = T.alloc_ub((8, 64), "float32")
        peak = T.alloc_ub((8,), "float32")
        row = T.alloc_var("int32", init=0)
        while row < 64:
            T.copy(X[row, 0], x)
            T.reduce_max(x, peak, dim=-1)
            while peak[0] > 1.0:  # evaluated again after the vector work of each iteration
                T.tile.mul(x, x, 0.5)
                T.reduce_max(x, peak, dim=-1)
            T.copy(x, Y[row, 0])
            row += 8


def test_a_condition_reads_what_vector_work_wrote() -> None:
    x = np.random.default_rng(0).random((64, 64)).astype(np.float32) * 20
    y = np.zeros_like(x)
    run(halved, x, y)
    expected = x.copy()
    for first in range(0, 64, 8):
        while expected[first].max() > 1:
            expected[first:first + 8] *= np.float32(0.5)
    np.testing.assert_array_equal(y, expected)
