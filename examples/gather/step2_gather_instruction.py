"""T.gather along the last axis

`T.gather` selects elements along the last axis of a tile, which is exactly this operation: three of four instructions are
gone.

Insight: the hardware has an instruction for it.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def taken(n, count, x, at, y):
    T.gather(x, y, at)


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
