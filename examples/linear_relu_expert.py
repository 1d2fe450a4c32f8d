"""relu(A @ B + bias) in Expert mode: the Cube core runs up to two tiles ahead of the Vector cores, each of which processes
half of the rows.

The Developer version is ``linear_relu.py``.
"""

import numpy as np
from linear_relu import SHAPES, expected, inputs

import tilelang_npu as tilelang
import tilelang_npu.language as T

READY, FREE = 0, 1  # flags between the cores: a tile is in its workspace; a tile was read from it


@tilelang.jit(out_idx=[3], workspace_idx=[4], target="ascendc")
def linear_relu(M, N, K, tile_M=128, tile_N=128, tile_K=128, blocks=24, stages=2):
    columns, half, depth = T.ceildiv(N, tile_N), tile_M // 2, T.ceildiv(K, tile_K)
    tiles = T.ceildiv(M, tile_M) * columns

    @T.prim_func
    def linear_relu(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        Bias: T.Tensor((1, N), "float32"),
        C: T.Tensor((M, N), "float16"),
        between: T.Tensor((blocks, 2, tile_M, tile_N), "float32"),
    ):
        with T.Kernel(blocks, is_npu=True) as (block, vid):
            with T.Scope("C"):
                a = T.alloc_L1((stages, tile_M, tile_K), "float16")
                b = T.alloc_L1((stages, tile_K, tile_N), "float16")
                c = T.alloc_L0C((2, tile_M, tile_N), "float32")

                for slot in range(stages):
                    T.set_flag("mte1", "mte2", slot)
                for slot in range(2):
                    T.set_flag("fix", "m", slot)
                for i in T.serial(T.ceildiv(tiles - block, blocks)):
                    row = (i * blocks + block) // columns * tile_M
                    column = (i * blocks + block) % columns * tile_N
                    T.wait_flag("fix", "m", i % 2)
                    for k in T.serial(depth):
                        slot = (i * depth + k) % stages
                        T.wait_flag("mte1", "mte2", slot)
                        T.copy(A[row, k * tile_K], a[slot, :, :])
                        T.copy(B[k * tile_K, column], b[slot, :, :])
                        T.set_flag("mte2", "mte1", slot)
                        T.wait_flag("mte2", "mte1", slot)
                        T.gemm_v0(a[slot, :, :], b[slot, :, :], c[i % 2, :, :], init=(k == 0))
                        T.set_flag("mte1", "mte2", slot)
                    T.set_flag("m", "fix", i % 2)
                    if i >= 2:
                        T.wait_cross_flag(FREE)
                    T.wait_flag("m", "fix", i % 2)
                    T.copy(c[i % 2, :, :], between[block, i % 2, :, :])
                    T.set_flag("fix", "m", i % 2)
                    T.set_cross_flag("fix", READY)
                for slot in range(stages):
                    T.wait_flag("mte1", "mte2", slot)
                for slot in range(2):
                    T.wait_flag("fix", "m", slot)

            with T.Scope("V"):
                x = T.alloc_ub((2, half, tile_N), "float32")
                bias = T.alloc_ub((2, 1, tile_N), "float32")
                out = T.alloc_ub((2, half, tile_N), "float16")

                for slot in range(2):
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("mte3", "v", slot)
                for i in T.serial(T.ceildiv(tiles - block, blocks)):
                    row = (i * blocks + block) // columns * tile_M
                    column = (i * blocks + block) % columns * tile_N
                    slot = i % 2
                    T.wait_flag("v", "mte2", slot)
                    T.copy(Bias[0, column], bias[slot, :, :])
                    T.wait_cross_flag(READY)
                    T.copy(between[block, slot, vid * half, 0], x[slot, :, :])
                    if i + 2 < T.ceildiv(tiles - block, blocks):
                        T.set_cross_flag("mte2", FREE)
                    T.set_flag("mte2", "v", slot)
                    T.wait_flag("mte2", "v", slot)
                    T.tile.add(x[slot, :, :], x[slot, :, :], bias[slot, :, :])
                    T.pipe_barrier("v")
                    T.tile.relu(x[slot, :, :], x[slot, :, :])
                    T.pipe_barrier("v")
                    T.wait_flag("mte3", "v", slot)
                    T.copy(x[slot, :, :], out[slot, :, :])
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("v", "mte3", slot)
                    T.wait_flag("v", "mte3", slot)
                    T.copy(out[slot, :, :], C[row + vid * half, column])
                    T.set_flag("mte3", "v", slot)
                for slot in range(2):
                    T.wait_flag("v", "mte2", slot)
                    T.wait_flag("mte3", "v", slot)

    return linear_relu


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        c = linear_relu(*shape)(*arrays)
        np.testing.assert_allclose(c.astype(np.float32), expected(*arrays), rtol=2e-3, atol=2e-2)
    print("PASS")
