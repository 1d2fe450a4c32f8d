"""Longer pieces along K, double-buffered

Rows of A are loaded in runs of 64 elements, 128 bytes, while GM and L2 move lines of 512 bytes, and each request has a
start-up cost. Pieces of 128 elements need half as many requests. `T.Pipelined` gives each tile in L1 two slots; a second
slot had no effect as long as M waited for MTE2 anyway.

Removes cause: small bursts
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def matmul(M, N, K, dtype, tile_M=128, tile_N=256, tile_K=128):
    total = "int32" if dtype == "int8" else "float32"
    result = "int32" if dtype == "int8" else dtype
    columns = T.ceildiv(N, tile_N)
    tiles = T.ceildiv(M, tile_M) * columns

    @T.prim_func
    def matmul(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), result)):
        with T.Kernel(tiles, is_npu=True) as (tile, _):
            a = T.alloc_shared((tile_M, tile_K), dtype)
            b = T.alloc_shared((tile_K, tile_N), dtype)
            c = T.alloc_fragment((tile_M, tile_N), total)
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
