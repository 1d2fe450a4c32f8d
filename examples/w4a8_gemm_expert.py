"""C = A @ B.T with B in packed int4, in Expert mode: the Vector cores, each with half of the rows of B, unpack up to two
tiles ahead of the Cube core.

The Developer version, which describes the format, is ``w4a8_gemm.py``.
"""

import numpy as np
from w4a8_gemm import SHAPES, TILE_K, expected, inputs

import tilelang_npu as tilelang
import tilelang_npu.language as T

READY, FREE = 0, 1  # flags between the cores: a tile of B is in its workspace; a tile was read from it


@tilelang.jit(out_idx=[2], workspace_idx=[3], target="ascendc")
def w4a8_gemm(M, N, K, tile_M=128, tile_N=128, tile_K=TILE_K, stages=2):
    rows, columns, packed_K, half = T.ceildiv(M, tile_M), T.ceildiv(N, tile_N), tile_K // 2, tile_N // 2
    depth = K // tile_K

    @T.prim_func
    def w4a8_gemm(
        A: T.Tensor((M, K), "int8"),
        B: T.Tensor((N, K // 2), "uint8"),
        C: T.Tensor((M, N), "int32"),
        between: T.Tensor((rows * columns, stages, tile_N, tile_K), "int8"),
    ):
        with T.Kernel(rows * columns, is_npu=True) as (block, vid):
            row = block // columns * tile_M
            column = block % columns * tile_N

            with T.Scope("V"):
                packed = T.alloc_ub((2, half, packed_K), "uint8")
                b = T.alloc_ub((2, half, tile_K), "int8")

                for slot in range(2):
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("mte3", "v", slot)
                for k in T.serial(depth):
                    slot = k % 2
                    T.wait_flag("v", "mte2", slot)
                    T.copy(B[column + vid * half, k * packed_K], packed[slot, :, :])
                    T.set_flag("mte2", "v", slot)
                    T.wait_flag("mte2", "v", slot)
                    T.wait_flag("mte3", "v", slot)
                    for i, j in T.Parallel(half, packed_K):
                        b[slot, i, j] = T.cast(packed[slot, i, j] & 15, "int8") - T.cast(8, "int8")
                        b[slot, i, packed_K + j] = T.cast(packed[slot, i, j] >> 4, "int8") - T.cast(8, "int8")
                    T.set_flag("v", "mte2", slot)
                    T.set_flag("v", "mte3", slot)
                    T.wait_flag("v", "mte3", slot)
                    if k >= stages:
                        T.wait_cross_flag(FREE)
                    T.copy(b[slot, :, :], between[block, k % stages, vid * half, 0])
                    T.set_flag("mte3", "v", slot)
                    T.set_cross_flag("mte3", READY)
                for slot in range(2):
                    T.wait_flag("v", "mte2", slot)
                    T.wait_flag("mte3", "v", slot)

            with T.Scope("C"):
                a = T.alloc_L1((2, tile_M, tile_K), "int8")
                b_l1 = T.alloc_L1((2, tile_N, tile_K), "int8")
                c = T.alloc_L0C((tile_M, tile_N), "int32")

                for slot in range(2):
                    T.set_flag("mte1", "mte2", slot)
                for k in T.serial(depth):
                    slot = k % 2
                    T.wait_flag("mte1", "mte2", slot)
                    T.copy(A[row, k * tile_K], a[slot, :, :])
                    T.wait_cross_flag(READY)
                    T.copy(between[block, k % stages, :, :], b_l1[slot, :, :])
                    if k + stages < depth:
                        T.set_cross_flag("mte2", FREE)
                    T.set_flag("mte2", "mte1", slot)
                    T.wait_flag("mte2", "mte1", slot)
                    T.gemm_v0(a[slot, :, :], b_l1[slot, :, :], c, transpose_B=True, init=(k == 0))
                    T.set_flag("mte1", "mte2", slot)
                for slot in range(2):
                    T.wait_flag("mte1", "mte2", slot)
                T.set_flag("m", "fix", 0)
                T.wait_flag("m", "fix", 0)
                T.copy(c, C[row, column])

    return w4a8_gemm


if __name__ == "__main__":
    for shape in SHAPES:
        arrays = inputs(*shape)
        out = w4a8_gemm(*shape)(*arrays)
        np.testing.assert_array_equal(out, expected(*arrays))
    print("PASS")
