"""Scalar variables in a kernel of both cores: each core has its own, and none goes without a value that it needs."""

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


@T.prim_func
def sums_on_both(A: T.Tensor((128, 32), "float16"), B: T.Tensor((32, 32), "float16"), W: T.Tensor((4, 32, 32), "float32"),
                 O: T.Tensor((128, 32), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        a = T.alloc_L1((32, 32), "float16")
        b = T.alloc_L1((32, 32), "float16")
        c = T.alloc_L0C((32, 32), "float32")
        u = T.alloc_ub((16, 32), "float32")
        n = T.alloc_var("int32", init=0)
        for _ in T.serial(4):
            with T.Scope("C"):
                T.copy(B, b)
                T.copy(A[n * 32, 0], a)
                T.gemm_v0(a, b, c, init=True)
                T.copy(c, W[n, 0, 0])
                T.set_cross_flag("FIX", 0)
                n = n + 1  # counts iterations of the Cube core only
            with T.Scope("V"):
                T.wait_cross_flag(0)
                T.copy(W[n, vid * 16, 0], u)
                T.copy(u, O[n * 32 + vid * 16, 0])
                n = n + 1


def test_each_core_counts_in_its_own_scope() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((128, 32), (32, 32)))
    w, o = np.zeros((4, 32, 32), np.float32), np.zeros((128, 32), np.float32)
    tilelang.compile(sums_on_both, target="ascendc", pass_configs=SYNC)(a, b, w, o)
    np.testing.assert_array_equal(o, a.astype(np.float32) @ b.astype(np.float32))


TABLE = np.array([1, 1, 2, 0, 0, 0, 0, 0], np.int32)


def product(setting: str) -> str:
    lines = setting.replace("\n", "\n            ")
    return f"""
    import tilelang_npu.language as T

    @T.prim_func
    def main(A: T.Tensor((128, 32), "float16"), B: T.Tensor((32, 32), "float16"), F: T.Tensor((8,), "int32"),
             W: T.Tensor((32, 32), "float32"), O: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((32, 32), "float16")
            b = T.alloc_L1((32, 32), "float16")
            c = T.alloc_L0C((32, 32), "float32")
            u = T.alloc_ub((16, 32), "float32")
            f = T.alloc_ub((8,), "int32")
            n = T.alloc_var("int32", init=0)
            T.copy(F, f)
            T.copy(B, b)
            {lines}
            T.gemm_v0(a, b, c, init=True)
            T.copy(c, W)
            T.copy(W[vid * 16, 0], u)
            T.tile.add(u, u, T.float32(n))
            T.copy(u, O[vid * 16, 0])
    """


LOAD = "\nT.copy(A[n * 32, 0], a)"
SETTINGS = ["n = f[2]", "if f[2] > 1:\n    n = 2", "n = f[2] if F[0] > 0 else 0", "while n < f[2]:\n    n += 1",
            "for k in range(4):\n    if k == f[2]:\n        break\n    n += 1", "m = T.alloc_var('int32', init=f[2])\nn = m"]


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_the_cube_does_not_ask_for_may_come_from_ub(source: Any, setting: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((128, 32), (32, 32)))
    o, w = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    module = source(product("T.copy(A[0, 0], a)\n" + setting))
    tilelang.compile(module.main, target="ascendc", pass_configs=AUTOMATIC)(a, b, TABLE, w, o)
    np.testing.assert_array_equal(o, a[:32].astype(np.float32) @ b.astype(np.float32) + 2)


@pytest.mark.parametrize("setting", SETTINGS + [text.replace("f[2]", "F[2]") for text in SETTINGS])
def test_cube_work_follows_what_comes_from_ub_or_gm(source: Any, setting: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((128, 32), (32, 32)))
    o, w = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    module = source(product(setting + LOAD))
    kernel = tilelang.compile(module.main, target="ascendc", pass_configs=AUTOMATIC)
    kernel(a, b, TABLE, w, o)
    np.testing.assert_array_equal(o, a[64:96].astype(np.float32) @ b.astype(np.float32) + 2)
    assert kernel.last_launch.hazards == []
