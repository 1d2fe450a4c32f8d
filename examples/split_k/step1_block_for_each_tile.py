"""One block for each tile

As for square matrices, each block computes a tile of C over all of K. Four cores work, and twenty are idle. (There is one
split of K here; the kernel supports several.) FIX adds the contents of L0C to C in GM.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def split_k(M, N, K, tile_M=128, tile_N=128, tile_K=128, splits=1):
    pieces = T.ceildiv(T.ceildiv(K, tile_K), splits)

    @T.prim_func
    def split_k(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, tile_M), T.ceildiv(N, tile_N), splits, is_npu=True) as (row, column, split, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")
            for i in T.Pipelined(pieces, num_stages=2):
                k = (split * pieces + i) * tile_K
                T.copy(A[row * tile_M, k], a)
                T.copy(B[k, column * tile_N], b)
                T.gemm(a, b, c, initC=(i == 0))
            T.atomic_add(C[row * tile_M, column * tile_N], c)

    return split_k


if __name__ == "__main__":
    check(split_k)
