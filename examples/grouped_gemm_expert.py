"""Grouped GEMM in Expert mode: slots in L1, halves of L0A and L0B, and every flag; all trip counts depend only on the
block's rows.

The Developer version is ``grouped_gemm.py``.
"""

import numpy as np
from grouped_gemm import SHAPES, expected, inputs

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="ascendc")
def grouped_gemm(rows, groups, N, K, tile_M=128, tile_N=256, tile_K=256, stages=2, step=64):
    columns, depth = T.ceildiv(N, tile_N), T.ceildiv(K, tile_K)
    row_tiles = T.ceildiv(rows, tile_M) + groups - 1

    @T.prim_func
    def grouped_gemm(
        A: T.Tensor((rows, K), "float16"),
        B: T.Tensor((groups, K, N), "float16"),
        Offsets: T.Tensor((groups + 1,), "int32"),
        C: T.Tensor((rows, N), "float16"),
    ):
        with T.Kernel(row_tiles * columns, is_npu=True) as (block, _):
            a = T.alloc_L1((stages, tile_M, tile_K), "float16")
            b = T.alloc_L1((stages, tile_K, tile_N), "float16")
            left = T.alloc_L0A((2, tile_M, step), "float16")
            right = T.alloc_L0B((2, step, tile_N), "float16")
            c = T.alloc_L0C((tile_M, tile_N), "float32")

            with T.Scope("C"):
                column = block % columns * tile_N
                group = T.alloc_var("int32", init=0)
                first = T.alloc_var("int32", init=0)
                seen = T.alloc_var("int32", init=0)
                for g in T.serial(groups):
                    if seen <= block // columns:
                        group = g
                        first = seen
                    seen = seen + T.ceildiv(Offsets[g + 1] - Offsets[g], tile_M)
                row = Offsets[group] + (block // columns - first) * tile_M
                count = T.min(Offsets[group + 1] - row, tile_M)

                if count > 0:
                    for slot in range(stages):
                        T.set_flag("mte1", "mte2", slot)
                    for half in range(2):
                        T.set_flag("m", "mte1", half)

                    for k in T.serial(depth):
                        T.wait_flag("mte1", "mte2", k % stages)
                        T.copy(A[row, k * tile_K], a[k % stages, :, :])
                        T.copy(B[group, k * tile_K, column], b[k % stages, :, :])
                        T.set_flag("mte2", "mte1", k % stages)

                        T.wait_flag("mte2", "mte1", k % stages)
                        for i in T.serial(tile_K // step):
                            T.wait_flag("m", "mte1", i % 2)
                            T.copy(a[k % stages, 0, i * step], left[i % 2, :, :])
                            T.copy(b[k % stages, i * step, 0], right[i % 2, :, :])
                            T.set_flag("mte1", "m", i % 2)
                            T.wait_flag("mte1", "m", i % 2)
                            T.mma(left[i % 2, :, :], right[i % 2, :, :], c, init=T.And(k == 0, i == 0))
                            T.set_flag("m", "mte1", i % 2)
                        T.set_flag("mte1", "mte2", k % stages)

                    for slot in range(stages):
                        T.wait_flag("mte1", "mte2", slot)
                    for half in range(2):
                        T.wait_flag("m", "mte1", half)
                    T.set_flag("m", "fix", 0)
                    T.wait_flag("m", "fix", 0)
                    T.copy(c[:count, :], C[row : row + count, column : column + tile_N])

    return grouped_gemm


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        c = grouped_gemm(*shape)(*arrays)
        np.testing.assert_allclose(c.astype(np.float32), expected(*arrays), rtol=2e-3, atol=2e-2)
    print("PASS")
