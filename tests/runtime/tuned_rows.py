"""Factories that are tuned in tests, small enough for hundreds of configurations."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def doubled(M: int, tile: int = 1024, stages: int = 1, factor: float = 2.0) -> Any:
    @T.prim_func
    def doubled(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(4, is_npu=True) as (block, _):
            a = T.alloc_ub((tile,), "float32")
            for i in T.Pipelined(M // 4 // tile, num_stages=stages):
                T.copy(A[block * (M // 4) + i * tile], a)
                T.vmul(a, factor, a)
                T.copy(a, B[block * (M // 4) + i * tile])

    return doubled


GRID = {"tile": [512, 1024, 2048, 4096, 8192, 1 << 16], "stages": [1, 2, 3]}  # the last has no room in UB
SIZE = 1 << 18
