"""Four rows, one store

Four places are loaded to UB at once, and the scalar unit reads them there, in a few cycles each. The four rows are loaded
one by one, as `T.Parallel` says, and stored together. Places beyond the last arrive as 0, which is a row like any other,
and what lies beyond the result is not written.

To know: that the scalar unit reads a number from UB in a few cycles and one from GM in hundreds, and that four stores can
be one.
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
