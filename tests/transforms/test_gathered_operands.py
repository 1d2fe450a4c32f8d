"""Operands of a gemm that only the Vector core can load, and tiles in L1 that vector work reads."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@pytest.mark.parametrize("guarded", [False, True])
def test_rows_by_indices_in_ub(guarded: bool, rng: np.random.Generator) -> None:
    @T.prim_func
    def main(Q: T.Tensor((16, 48), "float16"), KV: T.Tensor((50, 48), "float16"), I: T.Tensor((3, 20), "int32"),
             S: T.Tensor((3, 16, 20), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            q = T.alloc_shared((16, 48), "float16")
            kv = T.alloc_shared((20, 48), "float16")
            places = T.alloc_shared((20,), "int32")
            s = T.alloc_fragment((16, 20), "float32")
            T.copy(Q, q)
            for turn in T.serial(3):
                T.copy(I[turn, 0], places)
                T.clear(kv)
                for i in T.serial(20):
                    place = places[i]
                    if guarded:
                        if place != -1:
                            T.copy(KV[place, 0], kv[i, 0], size=[1, 48])
                    else:
                        T.copy(KV[place, 0:48], kv[i, 0:48])
                T.gemm(q, kv, s, initC=True, b_transpose=True)
                T.copy(s, S[turn, 0, 0])

    q, kv = rng.standard_normal((16, 48)).astype(np.float16), rng.standard_normal((50, 48)).astype(np.float16)
    places = rng.integers(-1 if guarded else 0, 50, (3, 20)).astype(np.int32)
    s = tilelang.compile(main, out_idx=[-1], target="npuir")(q, kv, places)
    rows = np.where((places == -1)[..., None], 0, kv.astype(np.float32)[places])
    np.testing.assert_allclose(s, np.einsum("hd,tkd->thk", q.astype(np.float32), rows), rtol=1e-3, atol=1e-3)


def test_index_kept_in_scalar_storage(rng: np.random.Generator) -> None:
    @T.prim_func
    def main(Q: T.Tensor((16, 32), "float16"), KV: T.Tensor((50, 32), "float16"), I: T.Tensor((16,), "int32"),
             S: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            q = T.alloc_shared((16, 32), "float16")
            kv = T.alloc_shared((16, 32), "float16")
            places = T.alloc_shared((16,), "int32")
            held = T.alloc_local((1,), "int32")
            s = T.alloc_fragment((16, 16), "float32")
            T.copy(Q, q)
            T.copy(I, places)
            for i in T.serial(16):
                held[0] = places[i] + 1
                T.copy(KV[held[0], 0:32], kv[i, 0:32])
            T.gemm(q, kv, s, initC=True, b_transpose=True)
            T.copy(s, S)

    q, kv = rng.standard_normal((16, 32)).astype(np.float16), rng.standard_normal((50, 32)).astype(np.float16)
    places = rng.integers(0, 49, 16).astype(np.int32)
    s = tilelang.compile(main, out_idx=[-1], target="npuir")(q, kv, places)
    np.testing.assert_allclose(s, q.astype(np.float32) @ kv[places + 1].astype(np.float32).T, rtol=1e-3, atol=1e-3)


def test_a_tile_in_l1_comes_to_vector_work_by_way_of_gm(rng: np.random.Generator) -> None:
    @T.prim_func
    def main(A: T.Tensor((40, 32), "float16"), S: T.Tensor((40, 40), "float32"), B: T.Tensor((40, 32), "float16")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((40, 32), "float16")
            b = T.alloc_shared((40, 32), "float16")
            s = T.alloc_fragment((40, 40), "float32")
            T.copy(A, a)
            T.gemm(a, a, s, initC=True, b_transpose=True)
            T.copy(s, S)
            T.copy(a, b)
            T.vexp(b, b)
            T.copy(b, B)

    a = rng.standard_normal((40, 32)).astype(np.float16)
    s, b = np.zeros((40, 40), np.float32), np.zeros_like(a)
    tilelang.compile(main, target="npuir")(a, s, b)
    np.testing.assert_allclose(s, a.astype(np.float32) @ a.astype(np.float32).T, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(b, np.exp(a.astype(np.float32)).astype(np.float16), rtol=2e-3)
