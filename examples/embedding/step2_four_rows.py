"""Four rows, one store

Four indices are loaded to UB at once, where the scalar unit reads each of them in a few cycles. The four rows are loaded
one by one, as `T.Parallel` states, and are stored together. Indices beyond the last are loaded as 0, which is a valid row,
and rows beyond the end of the result are not stored.

Insight: the scalar unit reads a number from UB in a few cycles, and from GM in hundreds; and one store can replace four.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def embedding(rows, columns, count, dtype, tile=4, cores=48):
    turns = T.ceildiv(count, tile * cores)

    @T.prim_func
    def embedding(
        W: T.Tensor((rows, columns), dtype), I: T.Tensor((count,), "int32"), Y: T.Tensor((count, columns), dtype)
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            at = T.alloc_shared((tile,), "int32")
            x = T.alloc_shared((tile, columns), dtype)
            for i in T.Pipelined(turns, num_stages=2):
                place = (i * cores + core) * tile
                T.copy(I[place], at)
                for r, c in T.Parallel(tile, columns):
                    x[r, c] = W[at[r], c]
                T.copy(x, Y[place, 0])

    return embedding


if __name__ == "__main__":
    check(embedding)
