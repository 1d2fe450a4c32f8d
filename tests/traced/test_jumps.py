"""``break``, ``continue``, ``T.loop_break``, ``T.grid``: the results of kernels with them, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

SYNC = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
AUTOMATIC = dict.fromkeys((
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC, tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC, tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING), True)
N = 16


@T.macro
def leave(value, limit):
    if value > limit:
        T.loop_break()


@T.prim_func
def scalars(X: T.Tensor((N,), "int32"), Y: T.Tensor((8, N), "int32"), limit: T.int32):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        x = T.alloc_ub((N,), "int32")
        y = T.alloc_ub((8, N), "int32")
        n = T.alloc_var("int32", init=0)
        k = T.alloc_var("int32", init=0)
        T.copy(X, x)
        T.tile.fill(y, 0)
        for i in T.serial(N):
            if x[i] > limit:
                break
            y[0, i] = x[i]
        for i in range(N):
            if x[i] % 2 == 0:
                continue
            y[1, i] = x[i]
        while True:
            if n == N:
                break
            y[2, n] = x[n] + 1
            n += 1
            if x[n - 1] > limit:
                break
        while x[k] <= limit:  # the element after the last one is not read
            k += 1
            if k >= N:
                break
            if x[k] == 3:
                continue
            y[3, k] = 1
        for i in T.serial(N):
            leave(x[i], limit)
            for j in range(4):
                if j > i:
                    break
                if j == 1:
                    continue
                y[4, i] += j + 1
            y[5, i] = 7
        for i, j in T.grid(2, 4):
            y[6, i * 8 + j] = i * 4 + j
        for i in T.unroll(4):
            if i == 2:
                continue
            y[7, i] = 5
        if vid == 0:
            T.copy(y, Y)


def expected(x: np.ndarray, limit: int) -> np.ndarray:
    y = np.zeros((8, N), np.int32)
    for i in range(N):
        if x[i] > limit:
            break
        y[0, i] = x[i]
    odd = x % 2 != 0
    y[1, odd] = x[odd]
    for i in range(N):
        y[2, i] = x[i] + 1
        if x[i] > limit:
            break
    k = 0
    while x[k] <= limit:
        k += 1
        if k >= N:
            break
        y[3, k] = x[k] != 3
    for i in range(N):
        if x[i] > limit:
            break
        y[4, i] = sum(j + 1 for j in range(4) if j <= i and j != 1)
        y[5, i] = 7
    y[6, :4], y[6, 8:12] = np.arange(4), np.arange(4, 8)
    y[7, [0, 1, 3]] = 5
    return y


def test_scalar_loops_are_left_where_python_leaves_them() -> None:
    kernel = tilelang.compile(scalars, target="ascendc", pass_configs=SYNC)
    rng = np.random.default_rng(3)
    for limit in (-1, 2, 5, 9, 12):
        x, y = rng.integers(0, 12, N).astype(np.int32), np.full((8, N), 99, np.int32)
        kernel(x, y, limit)
        np.testing.assert_array_equal(y, expected(x, limit))


def product(stages: int, through_memory: bool) -> Any:
    """Products that a table leaves out (3) or stops (7), added up on the Cube, or on the Vector core."""

    @T.prim_func
    def main(A: T.Tensor((32, 256), "float16"), B: T.Tensor((256, 32), "float16"), W: T.Tensor((32, 32), "float32"),
             C: T.Tensor((32, 32), "float32"), S: T.Tensor((8,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((32, 32), "float16")
            b = T.alloc_L1((32, 32), "float16")
            c = T.alloc_L0C((32, 32), "float32")
            part = T.alloc_ub((16, 32), "float32")
            total = T.alloc_ub((16, 32), "float32")
            T.tile.fill(total, 0.0)
            for k in T.Pipelined(8, num_stages=stages):
                if S[k] == 7:
                    break
                if S[k] == 3:
                    continue
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                if through_memory:
                    T.gemm_v0(a, b, c, init=True)
                    T.copy(c, W)
                    T.copy(W[vid * 16, 0], part)
                    T.tile.add(total, total, part)
                else:
                    T.gemm_v0(a, b, c, init=(k == 0))
            if through_memory:
                T.copy(total, C[vid * 16, 0])
            else:
                T.copy(c, C)

    return main


@pytest.mark.parametrize("through_memory", [False, True], ids=["cube", "both"])
@pytest.mark.parametrize("stages", [0, 2, 3])
@pytest.mark.parametrize("table", [[1] * 8, [1, 1, 7, 1, 1, 1, 1, 1], [1, 3, 1, 3, 1, 7, 1, 1], [1] * 7 + [7]], ids=str)
def test_both_cores_leave_a_pipelined_loop_together(stages: int, through_memory: bool, table: list[int]) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((32, 256), (256, 32)))
    c, w = np.full((32, 32), np.nan, np.float32), np.zeros((32, 32), np.float32)
    kernel = tilelang.compile(product(stages, through_memory), target="ascendc", pass_configs=AUTOMATIC)
    kernel(a, b, w, c, np.array(table, np.int32))
    total = np.zeros((32, 32), np.float32)
    for step, word in enumerate(table):
        if word == 7:
            break
        if word == 1:
            part = slice(step * 32, step * 32 + 32)
            total += a[:, part].astype(np.float32) @ b[part].astype(np.float32)
    np.testing.assert_array_equal(c, total)


def test_a_loop_without_jumps_has_no_flags(body: Any, traced: Any) -> None:
    kernel = traced(body("for i in T.grid(3):\n    b[i, 0] = 1.0"))
    assert "scf.for" in kernel.names()
    assert "scf.if" not in kernel.names()


def test_code_after_a_jump_is_not_executed(body: Any, traced: Any) -> None:
    kernel = traced(body("for i in range(3):\n    b[i, 0] = 1.0\n    break\n    b[i, 1] = 2.0"))
    assert "2.000000e+00" not in kernel.text


@pytest.mark.parametrize(("statements", "at", "message"), [
    ("T.loop_break()", "T.loop_break()", "T.loop_break is outside of a loop"),
    ("for i in T.Parallel(8):\n    if i > 3:\n        break", "break", "`break` cannot be used in T.Parallel"),
    ("for i in T.Parallel(8):\n    for j in range(3):\n        if j > i:\n            continue\n        b[i, j] = 1.0",
     "continue", "`continue` cannot be used in T.Parallel"),
    ("for i, j in T.grid(2, 3):\n    if j > i:\n        break", "break", "`break` in T.grid would leave the innermost"),
    ("for i, j in T.grid(2, 3):\n    T.loop_break()", "T.loop_break()", "T.loop_break in T.grid"),
    ("while True:\n    continue", "True", "never ends"),
])
def test_where_there_is_nothing_to_leave(body: Any, traced: Any, refused: Any, statements: str, at: str, message: str) -> None:
    function = body(statements)
    with refused("T141", at=at, message=message):
        traced(function)


def test_a_macro_that_leaves_the_loop_returns_nothing(source: Any, traced: Any, refused: Any) -> None:
    module = source("""
        import tilelang_npu.language as T

        @T.macro
        def leave(value):
            if value > 3:
                T.loop_break()
            return value + 1

        @T.prim_func
        def main(S: T.Tensor((8,), "int32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                for i in range(8):
                    x = leave(S[i])
    """)
    with refused("T141", at="return value + 1", message="a macro with break or continue for its caller's loop cannot return"):
        traced(module.main)
