"""One logarithm for each row

`ln(exp(x - m) / s)` is `x - (m + ln(s))`. This removes the second exponential, the division, and all logarithms except one
for each row, and no element underflows.

Insight: the logarithm of a quotient is a difference.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def rows_of(n, columns, x, e, share, largest, total):
    T.copy(x, e)
    T.reduce_max(e, largest, dim=-1)
    for r, c in T.Parallel(n, columns):
        share[r, c] = T.exp(e[r, c] - largest[r, 0])
    T.reduce_sum(share, total, dim=-1)
    for r in T.Parallel(n):
        largest[r, 0] = largest[r, 0] + T.log(total[r, 0])
    for r, c in T.Parallel(n, columns):
        x[r, c] = e[r, c] - largest[r, 0]


@tilelang.jit(target="npuir")
def log_softmax(rows, columns, dtype, tile=8, cores=48):
    @T.prim_func
    def log_softmax(
        X: T.Tensor((rows, columns), dtype), Y: T.Tensor((rows, columns), dtype)
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, columns), dtype)
            e = T.alloc_shared((tile, columns), "float32")
            share = T.alloc_shared((tile, columns), "float32")
            largest = T.alloc_shared((tile, 1), "float32")
            total = T.alloc_shared((tile, 1), "float32")
            for i in T.serial(T.ceildiv(rows, tile * cores)):
                row = (i * cores + core) * tile
                T.copy(X[row, 0], x)
                rows_of(tile, columns, x, e, share, largest, total)
                T.copy(x, Y[row, 0])

    return log_softmax


if __name__ == "__main__":
    check(log_softmax)
