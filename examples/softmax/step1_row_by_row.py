"""Row by row

Each of 48 cores processes every 48th row. An operation on a row of 1024 elements takes V at most 16 vectors, and every
instruction has its own start-up cost and wait.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def softmax(rows, columns, dtype, tile=1, cores=48):
    @T.prim_func
    def softmax(X: T.Tensor((rows, columns), dtype), Y: T.Tensor((rows, columns), dtype)):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, columns), dtype)
            e = T.alloc_shared((tile, columns), "float32")
            largest = T.alloc_shared((tile, 1), "float32")
            total = T.alloc_shared((tile, 1), "float32")
            for i in T.serial(T.ceildiv(rows, tile * cores)):
                row = (i * cores + core) * tile
                T.copy(X[row, 0], x)
                T.copy(x, e)
                T.reduce_max(e, largest, dim=-1)
                for r, c in T.Parallel(tile, columns):
                    e[r, c] = T.exp(e[r, c] - largest[r, 0])
                T.reduce_sum(e, total, dim=-1)
                for r, c in T.Parallel(tile, columns):
                    x[r, c] = e[r, c] / total[r, 0]
                T.copy(x, Y[row, 0])

    return softmax


if __name__ == "__main__":
    check(softmax)
