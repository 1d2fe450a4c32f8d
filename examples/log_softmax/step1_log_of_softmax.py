"""The logarithm of a softmax

The kernel computes the softmax and then its logarithm, eight rows at a time; loads, vector work and stores do not overlap.
It is not only slow: if the softmax of an element underflows in float32, its logarithm is lost.
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
    for r, c in T.Parallel(n, columns):
        x[r, c] = T.log(T.exp(e[r, c] - largest[r, 0]) / total[r, 0])


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
