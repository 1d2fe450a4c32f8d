"""Row by row

Every core processes every 48th index. The scalar unit reads the index from GM, the row is loaded and stored, and then the
next index follows.
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
            for i in T.serial(T.ceildiv(count, cores)):
                place = i * cores + core
                if place < count:
                    T.copy(W[I[place], 0], x)
                    T.copy(x, Y[place, 0])

    return embedding


if __name__ == "__main__":
    check(embedding)
