"""The bias as a product

FIX converts what it stores and can take negative elements as zero (`enable_relu`); what it cannot do is to add a row. But
a row that is added to all rows is a product, of a column of ones and that row, and M adds products. In float16 the bias would
lose half of its digits: it becomes two rows, what float16 holds of it, and what that leaves, a product with a K of 16 of which
fourteen are zero. The Vector cores part 1 KB for each tile; the sums never leave L0C before they are done, and no tile of
128 KB passes through L2 on its way to a Vector core and back.

To know: that FIX rectifies, and that M can add the bias. The profile sees loads that take their time, not that the result
could do without two of its three ways. (A bias beyond 65504 has no such parts.)
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def linear(M, N, K, tile_M=128, tile_N=256, tile_K=256, cores=24):
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
