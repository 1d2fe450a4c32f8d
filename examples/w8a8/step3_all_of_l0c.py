"""Tiles that fill L0C

128 x 256 sums of int32 are 128 KB.

Removes cause: narrow tile
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def w8a8(M, N, K, tile_M=128, tile_N=256, tile_K=256, cores=24):
    columns = T.ceildiv(N, tile_N)
    tiles = T.ceildiv(M, tile_M) * columns

    @T.prim_func
    def w8a8(
        A: T.Tensor((M, K), "int8"),
        B: T.Tensor((N, K), "int8"),
        ScaleA: T.Tensor((M, 1), "float32"),
        ScaleB: T.Tensor((1, N), "float32"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((tile_M, tile_K), "int8")
            b = T.alloc_shared((tile_N, tile_K), "int8")
            total = T.alloc_fragment((tile_M, tile_N), "int32")
            scale_a = T.alloc_shared((tile_M, 1), "float32")
            scale_b = T.alloc_shared((1, tile_N), "float32")
            c = T.alloc_shared((tile_M, tile_N), "float16")
            for i in T.serial(T.ceildiv(tiles - core, cores)):
                row = (i * cores + core) // columns * tile_M
                column = (i * cores + core) % columns * tile_N
                for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=2):
                    T.copy(A[row, k * tile_K], a)
                    T.copy(B[column, k * tile_K], b)
                    T.gemm(a, b, total, initC=(k == 0), b_transpose=True)
                T.copy(ScaleA[row, 0], scale_a)
                T.copy(ScaleB[0, column], scale_b)
                for r, n in T.Parallel(tile_M, tile_N):
                    c[r, n] = T.cast(total[r, n], "float32") * scale_a[r, 0] * scale_b[0, n]
                T.copy(c, C[row, column])

    return w8a8


if __name__ == "__main__":
    check(w8a8)
