"""One core, without conflicts

A row of `y` is loaded, the row of `x` is added in UB, and the sum is stored. If two cores did this for the same row at the
same time, one addition would be lost, so the kernel uses one core.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def index_add(rows, columns, count, places, order, dtype):
    @T.prim_func
    def index_add(
        X: T.Tensor((count, columns), dtype), I: T.Tensor((count,), "int32"), Y: T.Tensor((rows, columns), dtype)
    ):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((1, columns), dtype)
            y = T.alloc_shared((1, columns), dtype)
            for row in T.serial(count):
                place = I[row]
                T.copy(X[row, 0], x)
                T.copy(Y[place, 0], y)
                T.vadd(x, y, y)
                T.copy(y, Y[place, 0])

    return index_add


if __name__ == "__main__":
    check(index_add)
