"""An indexed read in T.Parallel

`y[r, c] = x[r, at[r, c]]` in `T.Parallel` is compiled to a vector gather that treats the tile as one long row: the row
number times the row length is first added to each index, and the gathered elements are then copied to the result. Every
core processes every 48th row.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def taken(n, count, x, at, y):
    for r, c in T.Parallel(n, count):
        y[r, c] = x[r, at[r, c]]


@tilelang.jit(target="npuir")
def gather(rows, columns, count, dtype, tile=1, cores=48):
    @T.prim_func
    def gather(
        X: T.Tensor((rows, columns), dtype), I: T.Tensor((rows, count), "int32"), Y: T.Tensor((rows, count), dtype)
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, columns), dtype)
            at = T.alloc_shared((tile, count), "int32")
            y = T.alloc_shared((tile, count), dtype)
            for i in T.serial(T.ceildiv(rows, tile * cores)):
                row = (i * cores + core) * tile
                T.copy(X[row, 0], x)
                T.copy(I[row, 0], at)
                taken(tile, count, x, at, y)
                T.copy(y, Y[row, 0])

    return gather


if __name__ == "__main__":
    check(gather)
