"""C = A @ B in one wave, in Expert mode: the slots in L1 are used across tiles of C, so that the first loads of a tile run
during the last products and the store of the previous tile.

The Developer version is ``persistent_gemm.py``.
"""

import numpy as np
from persistent_gemm import SHAPES, expected, inputs

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="ascendc")
def persistent_gemm(M, N, K, tile_M=128, tile_N=256, tile_K=256, stages=2, cores=24, step=64):
    columns, depth = T.ceildiv(N, tile_N), T.ceildiv(K, tile_K)
    tiles = T.ceildiv(M, tile_M) * columns

    @T.prim_func
    def persistent_gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
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
                T.set_flag("fix", "m", 0)

                for turn in T.serial(T.ceildiv(tiles, cores)):
                    tile = turn * cores + core
                    if tile < tiles:
                        row = tile // columns * tile_M
                        column = tile % columns * tile_N
                        for k in T.serial(depth):
                            slot = (turn * depth + k) % stages
                            T.wait_flag("mte1", "mte2", slot)
                            T.copy(A[row, k * tile_K], a[slot, :, :])
                            T.copy(B[k * tile_K, column], b[slot, :, :])
                            T.set_flag("mte2", "mte1", slot)

                            T.wait_flag("mte2", "mte1", slot)
                            if k == 0:
                                T.wait_flag("fix", "m", 0)
                            for i in T.serial(tile_K // step):
                                T.wait_flag("m", "mte1", i % 2)
                                T.copy(a[slot, 0, i * step], left[i % 2, :, :])
                                T.copy(b[slot, i * step, 0], right[i % 2, :, :])
                                T.set_flag("mte1", "m", i % 2)
                                T.wait_flag("mte1", "m", i % 2)
                                T.mma(left[i % 2, :, :], right[i % 2, :, :], c, init=T.And(k == 0, i == 0))
                                T.set_flag("m", "mte1", i % 2)
                            T.set_flag("mte1", "mte2", slot)
                        T.set_flag("m", "fix", 0)
                        T.wait_flag("m", "fix", 0)
                        T.copy(c, C[row, column])
                        T.set_flag("fix", "m", 0)

                for slot in range(stages):
                    T.wait_flag("mte1", "mte2", slot)
                for half in range(2):
                    T.wait_flag("m", "mte1", half)
                T.wait_flag("fix", "m", 0)

    return persistent_gemm


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        c = persistent_gemm(*shape)(*arrays)
        np.testing.assert_allclose(c.astype(np.float32), expected(*arrays), rtol=2e-3, atol=2e-2)
    print("PASS")
