"""One block for each matrix

A block computes all tiles of its matrix, one after the other. 16 matrices occupy only 16 of the 24 cores.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def batched_gemm(batch, M, N, K, tile_M=128, tile_N=128, tile_K=128):
    rows, columns = T.ceildiv(M, tile_M), T.ceildiv(N, tile_N)

    @T.prim_func
    def batched_gemm(
        A: T.Tensor((batch, M, K), "float16"),
        B: T.Tensor((batch, K, N), "float16"),
        C: T.Tensor((batch, M, N), "float16"),
    ):
        with T.Kernel(batch, is_npu=True) as (one, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")
            for tile in T.serial(rows * columns):
                row = tile // columns * tile_M
                column = tile % columns * tile_N
                for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=2):
                    T.copy(A[one, row, k * tile_K], a)
                    T.copy(B[one, k * tile_K, column], b)
                    T.gemm(a, b, c, initC=(k == 0))
                T.copy(c, C[one, row, column])

    return batched_gemm


if __name__ == "__main__":
    check(batched_gemm)
