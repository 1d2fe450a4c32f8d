"""Bands of four rows

The tiles are computed in bands of four rows, column by column: a wave is four tiles high and six wide, and loads four bands
of A and six columns of B in place of one and 24. B is read from HBM once for each band, a quarter as often.

Removes cause: tile order
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def swizzle(M, N, K, band=4, tile_M=128, tile_N=256, tile_K=256, cores=24):
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
                    first = tile // (band * columns) * band
                    high = T.min(band, rows - first)
                    place = tile - first * columns
                    row = (first + place % high) * tile_M
                    column = place // high * tile_N
                    for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=2):
                        T.copy(A[row, k * tile_K], a)
                        T.copy(B[k * tile_K, column], b)
                        T.gemm(a, b, c, initC=(k == 0))
                    T.copy(c, C[row, column])

    return swizzle


if __name__ == "__main__":
    check(swizzle)
