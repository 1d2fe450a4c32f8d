"""Tiles row by row

This is the last kernel of the other ladder, which computes tile after tile along a row of C. A wave is half a row of tiles:
it loads one band of A, and half of B. Before the next row of tiles needs the same part of B again, all 288 MB of B have
passed through L2 and evicted it: all of B is read from HBM once for each row of tiles of C.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def swizzle(M, N, K, tile_M=128, tile_N=256, tile_K=256, cores=24):
    rows, columns = T.ceildiv(M, tile_M), T.ceildiv(N, tile_N)

    @T.prim_func
    def swizzle(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")
            for turn in T.serial(T.ceildiv(rows * columns, cores)):
                tile = turn * cores + core
                if tile < rows * columns:
                    row = tile // columns * tile_M
                    column = tile % columns * tile_N
                    for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=2):
                        T.copy(A[row, k * tile_K], a)
                        T.copy(B[k * tile_K, column], b)
                        T.gemm(a, b, c, initC=(k == 0))
                    T.copy(c, C[row, column])

    return swizzle


if __name__ == "__main__":
    check(swizzle)
