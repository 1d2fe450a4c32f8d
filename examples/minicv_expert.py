"""exp(A @ B) in Expert mode: the Cube core runs up to two tiles ahead of the Vector cores, each of which processes half of
the rows.

The Developer version is ``minicv.py``.
"""

import numpy as np
from minicv import SHAPES, expected, inputs

import tilelang_npu as tilelang
import tilelang_npu.language as T

READY, FREE = 0, 1  # flags between the cores: a tile is in its workspace; a tile was read from it


@tilelang.jit(out_idx=[2], workspace_idx=[3], target="ascendc")
def exp_of_product(M, N, K, tile_M=64, tile_N=128, blocks=24, stages=2):
    columns, half = T.ceildiv(N, tile_N), tile_M // 2
    tiles = T.ceildiv(M, tile_M) * columns

    @T.prim_func
    def exp_of_product(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        D: T.Tensor((M, N), "float32"),
        between: T.Tensor((blocks, stages, tile_M, tile_N), "float32"),
    ):
        with T.Kernel(blocks, is_npu=True) as (block, vid):
            with T.Scope("C"):
                a = T.alloc_L1((stages, tile_M, K), "float16")
                b = T.alloc_L1((stages, K, tile_N), "float16")
                product = T.alloc_L0C((2, tile_M, tile_N), "float32")

                for slot in range(stages):
                    T.set_flag("mte1", "mte2", slot)
                for slot in range(2):
                    T.set_flag("fix", "m", slot)
                for i in T.serial(T.ceildiv(tiles - block, blocks)):
                    row = (i * blocks + block) // columns * tile_M
                    column = (i * blocks + block) % columns * tile_N
                    slot = i % stages
                    T.wait_flag("mte1", "mte2", slot)
                    T.copy(A[row, 0], a[slot, :, :])
                    T.copy(B[0, column], b[slot, :, :])
                    T.set_flag("mte2", "mte1", slot)
                    T.wait_flag("mte2", "mte1", slot)
                    T.wait_flag("fix", "m", i % 2)
                    T.gemm_v0(a[slot, :, :], b[slot, :, :], product[i % 2, :, :], init=True)
                    T.set_flag("mte1", "mte2", slot)
                    T.set_flag("m", "fix", i % 2)
                    if i >= stages:
                        T.wait_cross_flag(FREE)
                    T.wait_flag("m", "fix", i % 2)
                    T.copy(product[i % 2, :, :], between[block, slot, :, :])
                    T.set_flag("fix", "m", i % 2)
                    T.set_cross_flag("fix", READY)
                for slot in range(stages):
                    T.wait_flag("mte1", "mte2", slot)
                for slot in range(2):
                    T.wait_flag("fix", "m", slot)

            with T.Scope("V"):
                x = T.alloc_ub((2, half, tile_N), "float32")

                for slot in range(2):
                    T.set_flag("mte3", "mte2", slot)
                for i in T.serial(T.ceildiv(tiles - block, blocks)):
                    row = (i * blocks + block) // columns * tile_M
                    column = (i * blocks + block) % columns * tile_N
                    slot = i % 2
                    T.wait_cross_flag(READY)
                    T.wait_flag("mte3", "mte2", slot)
                    T.copy(between[block, i % stages, vid * half, 0], x[slot, :, :])
                    if i + stages < T.ceildiv(tiles - block, blocks):
                        T.set_cross_flag("mte2", FREE)
                    T.set_flag("mte2", "v", slot)
                    T.wait_flag("mte2", "v", slot)
                    T.tile.exp(x[slot, :, :], x[slot, :, :])
                    T.set_flag("v", "mte3", slot)
                    T.wait_flag("v", "mte3", slot)
                    T.copy(x[slot, :, :], D[row + vid * half, column])
                    T.set_flag("mte3", "mte2", slot)
                for slot in range(2):
                    T.wait_flag("mte3", "mte2", slot)

    return exp_of_product


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = exp_of_product(*shape)(*arrays)
        np.testing.assert_allclose(out, expected(*arrays), rtol=2e-3, atol=1e-3)
    print("PASS")
