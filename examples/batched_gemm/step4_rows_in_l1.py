"""Rows of A stay in L1

L1 has room for 128 full rows of A. Each core computes consecutive tiles, and loads its rows of A only for its first tile
and at the start of each row of tiles.

Insight: L1 has room for full rows of A, so the order in which a core takes tiles affects the number of loads.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def batched_gemm(batch, M, N, K, tile_M=128, tile_N=256, tile_K=128, cores=24):
    rows, columns = T.ceildiv(M, tile_M), T.ceildiv(N, tile_N)

    @T.prim_func
    def batched_gemm(
        A: T.Tensor((batch, M, K), "float16"),
        B: T.Tensor((batch, K, N), "float16"),
        C: T.Tensor((batch, M, N), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((tile_M, T.ceildiv(K, tile_K) * tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")
            first = core * batch * rows * columns // cores
            for i in T.serial((core + 1) * batch * rows * columns // cores - first):
                one = (first + i) // (rows * columns)
                row = (first + i) // columns % rows * tile_M
                column = (first + i) % columns * tile_N
                if (i == 0) | (column == 0):
                    T.copy(A[one, row, 0], a)
                for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=2):
                    T.copy(B[one, k * tile_K, column], b)
                    T.gemm(a[:, k * tile_K : (k + 1) * tile_K], b, c, initC=(k == 0))
                T.copy(c, C[one, row, column])

    return batched_gemm


if __name__ == "__main__":
    check(batched_gemm)
