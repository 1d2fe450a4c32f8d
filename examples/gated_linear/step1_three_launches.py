"""Three launches

Each product is stored in GM as float32, and a third launch on all Vector cores combines them. A is loaded again for the
second product.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def product(M, N, K, tile_M, tile_N, tile_K, A, B, C):
    columns = T.ceildiv(N, tile_N)
    with T.Kernel(T.ceildiv(M, tile_M) * columns, is_npu=True) as (block, _):
        a = T.alloc_shared((tile_M, tile_K), "float16")
        b = T.alloc_shared((tile_N, tile_K), "float16")
        c = T.alloc_fragment((tile_M, tile_N), "float32")
        row = block // columns * tile_M
        column = block % columns * tile_N
        for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=2):
            T.copy(A[row, k * tile_K], a)
            T.copy(B[column, k * tile_K], b)
            T.gemm(a, b, c, initC=(k == 0), b_transpose=True)
        T.copy(c, C[row, column])


@tilelang.jit(target="npuir")
def gated_linear(M, N, K, tile_M=128, tile_N=128, tile_K=64, rows=16, width=512):
    pieces = T.ceildiv(N, width)

    @T.prim_func
    def gated_linear(
        A: T.Tensor((M, K), "float16"),
        Gate: T.Tensor((N, K), "float16"),
        Up: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        gate = T.alloc_global((M, N), "float32")
        up = T.alloc_global((M, N), "float32")
        product(M, N, K, tile_M, tile_N, tile_K, A, Gate, gate)
        product(M, N, K, tile_M, tile_N, tile_K, A, Up, up)
        with T.Kernel(48, is_npu=True) as (core, _):
            z = T.alloc_shared((rows, width), "float32")
            u = T.alloc_shared((rows, width), "float32")
            out = T.alloc_shared((rows, width), "float16")
            for i in T.Pipelined(T.ceildiv(T.ceildiv(M, rows) * pieces - core, 48), num_stages=2):
                row = (i * 48 + core) // pieces * rows
                column = (i * 48 + core) % pieces * width
                T.copy(gate[row, column], z)
                T.copy(up[row, column], u)
                for r, n in T.Parallel(rows, width):
                    out[r, n] = z[r, n] / (1.0 + T.exp(-z[r, n])) * u[r, n]
                T.copy(out, C[row, column])

    return gated_linear


if __name__ == "__main__":
    check(gated_linear)
