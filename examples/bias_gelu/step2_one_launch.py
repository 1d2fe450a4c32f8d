"""One launch

The same lines in one kernel. The sum stays in UB, so no intermediate tensor is needed: each element is read once and
written once. The following steps keep V busy. (A macro, `T.macro`, contains the computation on a tile; it is inlined where
it is called.)

Removes cause: separate launches
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def gelu(n, columns, x, z, b):
    T.copy(x, z)
    for r, c in T.Parallel(n, columns):
        z[r, c] = z[r, c] + b[0, c]
    for r, c in T.Parallel(n, columns):
        cube = z[r, c] * z[r, c] * z[r, c]
        x[r, c] = 0.5 * z[r, c] * (1 + T.tanh(0.7978845608 * (z[r, c] + 0.044715 * cube)))


@tilelang.jit(target="npuir")
def bias_gelu(rows, columns, dtype, tile=2, cores=48):
    @T.prim_func
    def bias_gelu(
        X: T.Tensor((rows, columns), dtype), B: T.Tensor((1, columns), dtype), Y: T.Tensor((rows, columns), dtype)
    ):
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
                gelu(tile, columns, x, z, b)
                T.copy(x, Y[row, 0])

    return bias_gelu


if __name__ == "__main__":
    check(bias_gelu)
