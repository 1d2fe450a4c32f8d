"""Four slots

With four slots (`num_stages=4`) rows are loaded while earlier rows are stored, and the scalar unit reads indices ahead.

The compiler already pipelines the serial loop of the previous step (`pipeline-loops`), so the time hardly changes.
`T.Pipelined` states the pipelining in the source and sets the number of slots.

Insight: none. The step gains no time, because the compiler already pipelines the loop.
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
            for i in T.Pipelined(T.ceildiv(count, cores), num_stages=4):
                row = i * cores + core
                if row < count:
                    T.copy(X[row, 0], x)
                    T.atomic_add(Y[I[row], 0], x)

    return index_add


if __name__ == "__main__":
    check(index_add)
