"""Sixteen rows

Sixteen rows share the start-up cost of each load, store and instruction; the row of factors is the same for all of them.

Removes cause: small tiles
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def cast_broadcast(rows, columns, dtype, tile=16, cores=48):
    given = "float16" if dtype == "float32" else "float32"

    @T.prim_func
    def cast_broadcast(
        X: T.Tensor((rows, columns), dtype), S: T.Tensor((columns,), "float32"), Y: T.Tensor((rows, columns), given)
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            s = T.alloc_shared((1, columns), "float32")
            x = T.alloc_shared((tile, columns), dtype)
            y = T.alloc_shared((tile, columns), given)
            T.copy(S, s[0, :])
            for i in T.serial(T.ceildiv(rows, tile * cores)):
                row = (i * cores + core) * tile
                T.copy(X[row, 0], x)
                for r, c in T.Parallel(tile, columns):
                    y[r, c] = T.cast(x[r, c], "float32") * s[0, c]
                T.copy(y, Y[row, 0])

    return cast_broadcast


if __name__ == "__main__":
    check(cast_broadcast)
