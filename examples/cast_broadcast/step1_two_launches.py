"""Two launches

One launch converts `x` to float32, the other multiplies and converts the result to its type, with an intermediate tensor,
as a library would do it.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def cast_broadcast(rows, columns, dtype, tile=2, cores=48):
    given = "float16" if dtype == "float32" else "float32"

    @T.prim_func
    def cast_broadcast(
        X: T.Tensor((rows, columns), dtype), S: T.Tensor((columns,), "float32"), Y: T.Tensor((rows, columns), given)
    ):
        W = T.alloc_global((rows, columns), "float32")
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, columns), dtype)
            w = T.alloc_shared((tile, columns), "float32")
            for i in T.serial(T.ceildiv(rows, tile * cores)):
                row = (i * cores + core) * tile
                T.copy(X[row, 0], x)
                T.copy(x, w)
                T.copy(w, W[row, 0])
        with T.Kernel(cores, is_npu=True) as (core, _):
            s = T.alloc_shared((1, columns), "float32")
            w = T.alloc_shared((tile, columns), "float32")
            y = T.alloc_shared((tile, columns), given)
            T.copy(S, s[0, :])
            for i in T.serial(T.ceildiv(rows, tile * cores)):
                row = (i * cores + core) * tile
                T.copy(W[row, 0], w)
                T.vmul(w, s, w)
                T.copy(w, y)
                T.copy(y, Y[row, 0])

    return cast_broadcast


if __name__ == "__main__":
    check(cast_broadcast)
