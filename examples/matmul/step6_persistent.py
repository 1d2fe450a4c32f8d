"""One block for each core

512 tiles on 24 cores are 22 waves, and each wave starts with empty pipes: the first loads of a tile wait until the last
store of the previous tile has ended. A block that processes every 24th tile loads the next tile while it still multiplies
and stores the previous one.

Insight: each block starts with empty pipes. Nothing overlaps between two blocks, but the iterations of a loop overlap.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def matmul(M, N, K, dtype, tile_M=128, tile_N=256, cores=24):
    total = "int32" if dtype == "int8" else "float32"
    result = "int32" if dtype == "int8" else dtype
    tile_K = 512 if dtype == "int8" else 256
    columns = T.ceildiv(N, tile_N)
    tiles = T.ceildiv(M, tile_M) * columns

    @T.prim_func
    def matmul(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), result)):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((tile_M, tile_K), dtype)
            b = T.alloc_shared((tile_K, tile_N), dtype)
            c = T.alloc_fragment((tile_M, tile_N), total)
            for turn in T.serial(T.ceildiv(tiles, cores)):
                tile = turn * cores + core
                if tile < tiles:
                    row = tile // columns * tile_M
                    column = tile % columns * tile_N
                    for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=2):
                        T.copy(A[row, k * tile_K], a)
                        T.copy(B[k * tile_K, column], b)
                        T.gemm(a, b, c, initC=(k == 0))
                    T.copy(c, C[row, column])

    return matmul


if __name__ == "__main__":
    check(matmul)
