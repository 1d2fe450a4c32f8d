"""Two launches

One kernel adds the bias, the next computes GeLU, with the sum in global memory between them (`T.alloc_global`). Both are as
simple as possible: every core processes every 48th tile of two rows, and loads, vector work and stores do not overlap.

`num_stages=1` keeps each loop serial; otherwise the compiler would pipeline it (`pipeline-loops`).
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def bias_gelu(rows, columns, dtype, tile=2, cores=48):
    @T.prim_func
    def bias_gelu(
        X: T.Tensor((rows, columns), dtype), B: T.Tensor((1, columns), dtype), Y: T.Tensor((rows, columns), dtype)
    ):
        Z = T.alloc_global((rows, columns), "float32")
        with T.Kernel(cores, is_npu=True) as (core, _):
            narrow = T.alloc_shared((1, columns), dtype)
            b = T.alloc_shared((1, columns), "float32")
            x = T.alloc_shared((tile, columns), dtype)
            z = T.alloc_shared((tile, columns), "float32")
            T.copy(B, narrow)
            T.copy(narrow, b)
            for i in T.Pipelined(T.ceildiv(rows, tile * cores), num_stages=1):
                row = (i * cores + core) * tile
                T.copy(X[row, 0], x)
                T.copy(x, z)
                for r, c in T.Parallel(tile, columns):
                    z[r, c] = z[r, c] + b[0, c]
                T.copy(z, Z[row, 0])
        with T.Kernel(cores, is_npu=True) as (core, _):
            z = T.alloc_shared((tile, columns), "float32")
            y = T.alloc_shared((tile, columns), dtype)
            for i in T.Pipelined(T.ceildiv(rows, tile * cores), num_stages=1):
                row = (i * cores + core) * tile
                T.copy(Z[row, 0], z)
                for r, c in T.Parallel(tile, columns):
                    cube = z[r, c] * z[r, c] * z[r, c]
                    y[r, c] = 0.5 * z[r, c] * (1 + T.tanh(0.7978845608 * (z[r, c] + 0.044715 * cube)))
                T.copy(y, Y[row, 0])

    return bias_gelu


if __name__ == "__main__":
    check(bias_gelu)
