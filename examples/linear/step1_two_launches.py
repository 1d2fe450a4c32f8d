"""Two launches

The product is stored in GM as float32, 64 MB; a second launch on all Vector cores adds the bias, sets negative elements to
zero, and stores float16.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def linear(M, N, K, tile_M=128, tile_N=128, tile_K=128, rows=16, columns=512):
    lines, pieces = T.ceildiv(M, rows), T.ceildiv(N, columns)

    @T.prim_func
    def linear(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        Bias: T.Tensor((1, N), "float32"),
        C: T.Tensor((M, N), "float16"),
    ):
        product = T.alloc_global((M, N), "float32")
        with T.Kernel(T.ceildiv(M, tile_M) * T.ceildiv(N, tile_N), is_npu=True) as (block, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")
            row = block // T.ceildiv(N, tile_N) * tile_M
            column = block % T.ceildiv(N, tile_N) * tile_N
            for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=2):
                T.copy(A[row, k * tile_K], a)
                T.copy(B[k * tile_K, column], b)
                T.gemm(a, b, c, initC=(k == 0))
            T.copy(c, product[row, column])

        with T.Kernel(48, is_npu=True) as (core, _):
            x = T.alloc_shared((rows, columns), "float32")
            bias = T.alloc_shared((1, columns), "float32")
            out = T.alloc_shared((rows, columns), "float16")
            for i in T.Pipelined(T.ceildiv(lines * pieces - core, 48), num_stages=2):
                row = (i * 48 + core) // pieces * rows
                column = (i * 48 + core) % pieces * columns
                T.copy(product[row, column], x)
                T.copy(Bias[0, column], bias)
                T.vadd(x, bias, x)
                T.vrelu(x, x)
                T.copy(x, out)
                T.copy(out, C[row, column])

    return linear


if __name__ == "__main__":
    check(linear)
