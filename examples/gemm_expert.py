"""C = A @ B in Expert mode: slots in L1 that loads and products use alternately, halves of L0A and L0B, and every flag.

The Developer version is ``gemm.py``.
"""

import numpy as np
from gemm import SHAPES, expected, inputs

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="ascendc")
def gemm(M, N, K, tile_M=128, tile_N=256, tile_K=256, stages=2, step=64):
    rows, columns, depth = T.ceildiv(M, tile_M), T.ceildiv(N, tile_N), T.ceildiv(K, tile_K)

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(rows * columns, is_npu=True) as (block, _):
            row = block // columns * tile_M
            column = block % columns * tile_N

            a = T.alloc_L1((stages, tile_M, tile_K), "float16")
            b = T.alloc_L1((stages, tile_K, tile_N), "float16")
            left = T.alloc_L0A((2, tile_M, step), "float16")
            right = T.alloc_L0B((2, step, tile_N), "float16")
            c = T.alloc_L0C((tile_M, tile_N), "float32")

            with T.Scope("C"):
                for slot in range(stages):
                    T.set_flag("mte1", "mte2", slot)
                for half in range(2):
                    T.set_flag("m", "mte1", half)

                for k in T.serial(depth):
                    T.wait_flag("mte1", "mte2", k % stages)
                    T.copy(A[row, k * tile_K], a[k % stages, :, :])
                    T.copy(B[k * tile_K, column], b[k % stages, :, :])
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
                T.copy(c, C[row, column])

    return gemm


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        c = gemm(*shape)(*arrays)
        np.testing.assert_allclose(c.astype(np.float32), expected(*arrays), rtol=2e-3, atol=2e-2)
    print("PASS")
