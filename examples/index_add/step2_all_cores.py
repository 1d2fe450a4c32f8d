"""All cores, and accumulating stores

`T.atomic_add` is a store that adds in L2: no row of `y` is loaded to UB, and no addition is lost, whatever the order of the
cores. Each core processes every 48th row of `x`.

Removes cause: few blocks
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def index_add(rows, columns, count, places, order, dtype, cores=48):
    @T.prim_func
    def index_add(
        X: T.Tensor((count, columns), dtype), I: T.Tensor((count,), "int32"), Y: T.Tensor((rows, columns), dtype)
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((1, columns), dtype)
            for i in T.serial(T.ceildiv(count, cores)):
                row = i * cores + core
                if row < count:
                    T.copy(X[row, 0], x)
                    T.atomic_add(Y[I[row], 0], x)

    return index_add


if __name__ == "__main__":
    check(index_add)
