"""A block for each small tile

Each block computes 64 x 64 elements of C: 4096 blocks, of which 24 run in parallel. For each piece of 64 along K it loads
64 x 64 elements of A and as many of B, and uses each of them 64 times. That is too few: MTE2 has no gaps, and M waits for
it.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def matmul(M, N, K, dtype, tile_M=64, tile_N=64, tile_K=64):
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
            for k in T.serial(T.ceildiv(K, tile_K)):
                T.copy(A[row, k * tile_K], a)
                T.copy(B[k * tile_K, column], b)
                T.gemm(a, b, c, initC=(k == 0))
            T.copy(c, C[row, column])

    return matmul


if __name__ == "__main__":
    check(matmul)
