"""Copies between a tile of each Vector core in UB and the matrix of the Cube core that consists of these tiles."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError

AUTO = dict.fromkeys((tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC, tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING,
                      tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE, tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC), True)
SIZES = [(32, 32, 32), (64, 32, 128), (96, 160, 64)]


def to_cube(M: int, N: int, K: int, dtype: str, *, by_rows: bool) -> Any:
    """Each Vector core loads its half of A, and both halves become one operand of the product."""
    rows, columns = (M // 2, K) if by_rows else (M, K // 2)

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            own = T.alloc_ub((rows, columns), dtype)
            a = T.alloc_L1((M, K), dtype)
            b = T.alloc_L1((K, N), dtype)
            c = T.alloc_L0C((M, N), "float32")
            T.copy(A[vid * rows % M, vid * columns % K], own)
            T.copy(own, a)
            T.copy(B, b)
            T.gemm_v0(a, b, c, init=True)
            T.copy(c, C)

    return main


def to_vector(M: int, N: int, K: int, dtype: str, *, by_rows: bool) -> Any:
    """Each Vector core takes its half of the product."""
    rows, columns = (M // 2, N) if by_rows else (M, N // 2)

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((M, K), dtype)
            b = T.alloc_L1((K, N), dtype)
            c = T.alloc_L0C((M, N), "float32")
            own = T.alloc_ub((rows, columns), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm_v0(a, b, c, init=True)
            T.copy(c, own)
            T.copy(own, C[vid * rows % M, vid * columns % N])

    return main


@pytest.mark.parametrize("chip", ["910B2", "910_95"])
@pytest.mark.parametrize("by_rows", [True, False], ids=["rows", "columns"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kernel", [to_cube, to_vector])
def test_each_vector_core_copies_its_part(kernel: Any, dtype: str, by_rows: bool, chip: str) -> None:
    for seed, (M, N, K) in enumerate(SIZES):
        made = tilelang.compile(kernel(M, N, K, dtype, by_rows=by_rows), out_idx=[-1], target="ascendc", pass_configs=AUTO,
                                chip=chip, sanitize=True)
        rng = np.random.default_rng(seed)
        a, b = (rng.integers(-3, 4, shape).astype(getattr(ml_dtypes, dtype, None) or dtype) for shape in ((M, K), (K, N)))
        np.testing.assert_array_equal(made(a, b), a.astype(np.float32) @ b.astype(np.float32))
        assert made.check(a, b), "equal to the interpreter"


def test_other_sizes_are_refused() -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            own = T.alloc_ub((8, 32), "float16")  # a quarter
            a = T.alloc_L1((32, 32), "float16")
            c = T.alloc_L0C((32, 32), "float32")
            T.copy(A[vid * 8, 0], own)
            T.copy(own, a)
            T.gemm_v0(a, a, c, init=True)
            T.copy(c, C)

    with pytest.raises(TileError, match="have different shapes") as caught:
        tilelang.compile(main, out_idx=[-1], target="ascendc", pass_configs=AUTO)
    assert caught.value.code == "T131"


@pytest.mark.parametrize("kernel", [to_cube, to_vector])
def test_the_other_dialect_has_no_such_copies(kernel: Any) -> None:
    with pytest.raises(TileError):
        tilelang.compile(kernel(32, 32, 32, "float16", by_rows=True), out_idx=[-1], target="npuir")
