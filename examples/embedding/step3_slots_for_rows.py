"""A slot for each row

A store of four rows waits for the last of them, and the loads of the next places wait for the tile before. With one row in
each iteration again, and a slot for each of four (`num_stages=4`), rows are loaded while the one before them is stored, and
the scalar unit reads the numbers ahead.

To know: that a load that waits for a number has nothing to do with the load before it, and that slots for each let both be
under way.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def embedding(rows, columns, count, dtype, cores=48):
    @T.prim_func
    def embedding(
        W: T.Tensor((rows, columns), dtype), I: T.Tensor((count,), "int32"), Y: T.Tensor((count, columns), dtype)
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((1, columns), dtype)
            for i in T.Pipelined(T.ceildiv(count, cores), num_stages=4):
                place = i * cores + core
                if place < count:
                    T.copy(W[I[place], 0], x)
                    T.copy(x, Y[place, 0])

    return embedding


if __name__ == "__main__":
    check(embedding)
