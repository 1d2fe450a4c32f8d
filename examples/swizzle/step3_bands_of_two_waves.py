"""Bands of two waves

A band has 48 rows: two waves compute one column of tiles, each core with its own band of A. The 48 bands of A, 144 of the
192 MB of L2, stay there while the columns of B pass. All cores read a column of B at the same time and again in the next
wave, so it is read from HBM once for each band: twice in all. Bands of 24 rows, one wave, read B four times and take 2 %
longer; bands of 64 rows fill L2 with A alone.

Removes cause: tile order
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def swizzle(M, N, K, band=48, tile_M=128, tile_N=256, tile_K=256, cores=24):
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
