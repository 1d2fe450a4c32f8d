"""The bias as a product

FIX can convert what it stores and set negative elements to zero (`enable_relu`), but it cannot add a row. A row that is
added to all rows is the product of a column of ones and this row, and M accumulates products. A bias rounded to float16
would lose half of its digits, so it is split into two rows, its value in float16 and the remainder; the product has a K of
16, of which fourteen are zero. The Vector cores split 1 KB for each tile; the sums stay in L0C until they are complete, and
no tile of 128 KB passes through L2 to a Vector core and back. A tile has 256 x 256 sums now, which L0C cannot hold at once: the
compiler multiplies it in two halves.

Insight: FIX can apply ReLU, and M can add the bias. The profile shows slow loads, but not that two of the result's three
transfers are unnecessary. (A bias beyond 65504 cannot be split in this way.)
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def linear(M, N, K, tile_M=256, tile_N=256, tile_K=256, cores=24):
    columns = T.ceildiv(N, tile_N)
    tiles = T.ceildiv(M, tile_M) * columns

    @T.prim_func
    def linear(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        Bias: T.Tensor((1, N), "float32"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")
            ones = T.alloc_shared((tile_M, 16), "float16")
            bias = T.alloc_shared((1, tile_N), "float32")
            rest = T.alloc_shared((1, tile_N), "float32")
            parts = T.alloc_shared((16, tile_N), "float16")
            T.fill(ones, 1)
            T.clear(parts)
            for i in T.Pipelined(T.ceildiv(tiles - core, cores), num_stages=2):
                row = (i * cores + core) // columns * tile_M
                column = (i * cores + core) % columns * tile_N
                T.copy(Bias[0, column], bias)
                T.copy(bias, parts[0:1, :])
                T.copy(parts[0:1, :], rest)
                T.vsub(bias, rest, rest)
                T.copy(rest, parts[1:2, :])
                for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=2):
                    T.copy(A[row, k * tile_K], a)
                    T.copy(B[k * tile_K, column], b)
                    T.gemm(a, b, c, initC=(k == 0))
                T.gemm(ones, parts, c)
                T.copy(c, C[row, column], enable_relu=True)

    return linear


if __name__ == "__main__":
    check(linear)
