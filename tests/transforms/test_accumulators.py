"""Accumulators that are cleared where no gemm can do it."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


@pytest.mark.parametrize(("dtype", "total"), [("float16", "float32"), ("int8", "int32")])
@pytest.mark.parametrize("sync", [True, False])
def test_a_gemm_under_a_condition_adds_to_a_cleared_accumulator(dtype: str, total: str, sync: bool,
                                                                rng: np.random.Generator) -> None:
    @T.prim_func
    def main(A: T.Tensor((96, 32), dtype), B: T.Tensor((96, 48), dtype), Count: T.Tensor((4,), "int32"),
             C: T.Tensor((4, 32, 48), total)):
        with T.Kernel(4, is_npu=True) as (cid, _):
            a = T.alloc_L1((32, 32), dtype)
            b = T.alloc_L1((32, 48), dtype)
            c = T.alloc_L0C((32, 48), total)
            with T.Scope("C"):
                for i, j in T.Parallel(32, 48):
                    c[i, j] = 0
                for k in T.serial(3):
                    if k < Count[cid]:
                        T.barrier_all()
                        T.copy(A[k * 32, 0], a)
                        T.copy(B[k * 32, 0], b)
                        T.barrier_all()
                        T.gemm_v0(a, b, c, transpose_A=True)
                        T.barrier_all()
                T.copy(c, C[cid, 0, 0])

    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((96, 32), (96, 48)))
    counts = np.array([0, 3, 1, 2], np.int32)
    found = tilelang.compile(main, target="ascendc", out_idx=[3], pass_configs={"tl.ascend_auto_sync": sync})(a, b, counts)
    for block, count in enumerate(counts):
        rows = slice(0, 32 * count)
        np.testing.assert_array_equal(found[block], a[rows].astype(total).T @ b[rows].astype(total))
