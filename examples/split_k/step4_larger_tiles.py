"""Tiles that fill L0C, and twelve splits

With tiles of 128 x 256 one tile covers all of N: A is read once and B twice, where both were read twice. The second read is
served by L2, but it still takes time on the path from L2 to L1. Two tiles of C and twelve splits of K are again 24 blocks.

Insight: A and B are read twice, which is too little for the profile to report it, and another block for each tile of C
costs only one more addition.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def split_k(M, N, K, tile_M=128, tile_N=256, tile_K=256, splits=12):
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
