"""A slot for each of four rows

With four slots (`num_stages=4`) rows are loaded while those before them are stored, and the scalar unit reads the
places ahead.

The compiler pipelines the serial loop of the step before by itself (`pipeline-loops`), so that the time is about the same.
Here the source says so, and chooses the number of slots.

To know: nothing that wins time; the compiler does it without being told.
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
