"""Equal indices are summed in UB

With sorted indices, equal indices are consecutive. A core therefore processes consecutive rows in place of every 48th, and
sums rows in UB as long as the index stays the same (`T.alloc_var` is a scalar variable): sixteen rows of `x` become one
addition in memory. A run that continues in the next core's part is added by both cores. Unsorted indices have no runs, and
use the kernel of the previous step.

Insight: the indices are sorted, which the profile of a launch does not show, and rows with equal indices may be summed
before the store.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def index_add(rows, columns, count, places, order, dtype, cores=48):
    tile = 5
    share = T.ceildiv(T.ceildiv(count, cores), tile) * tile

    @T.prim_func
    def index_add(
        X: T.Tensor((count, columns), dtype), I: T.Tensor((count,), "int32"), Y: T.Tensor((rows, columns), dtype)
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            if order == "sorted":
                x = T.alloc_shared((tile, columns), dtype)
                at = T.alloc_shared((tile,), "int32")
                total = T.alloc_shared((1, columns), dtype)
                place = T.alloc_var("int32", init=-1)
                T.clear(total)
                for i in T.Pipelined(share // tile, num_stages=2):
                    row = core * share + i * tile
                    T.copy(X[row, 0], x)
                    T.copy(I[row], at)
                    for r in T.serial(tile):
                        if row + r < count:
                            if at[r] != place:
                                if place >= 0:
                                    T.atomic_add(Y[place, 0], total)
                                T.copy(x[r : r + 1, :], total)
                                place = at[r]
                            else:
                                T.vadd(total, x[r : r + 1, :], total)
                if place >= 0:
                    T.atomic_add(Y[place, 0], total)
            else:
                x = T.alloc_shared((1, columns), dtype)
                for i in T.Pipelined(T.ceildiv(count, cores), num_stages=4):
                    row = i * cores + core
                    if row < count:
                        T.copy(X[row, 0], x)
                        T.atomic_add(Y[I[row], 0], x)

    return index_add


if __name__ == "__main__":
    check(index_add)
