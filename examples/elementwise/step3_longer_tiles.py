"""Longer tiles

A load of 8 KB takes hundreds of cycles before its first byte arrives, however long it is. With four times as many elements
in a tile there is a quarter of these beginnings. UB has the room: 96 of 192 KB in float32.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def elementwise(length, dtype, op, tile=8192, cores=48):
    @T.prim_func
    def elementwise(X: T.Tensor((length,), dtype), Y: T.Tensor((length,), dtype), Z: T.Tensor((length,), dtype)):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile,), dtype)
            y = T.alloc_shared((tile,), dtype)
            z = T.alloc_shared((tile,), dtype)
            for i in T.serial(T.ceildiv(length, tile * cores)):
                start = (i * cores + core) * tile
                T.copy(X[start], x)
                T.copy(Y[start], y)
                for j in T.Parallel(tile):
                    z[j] = x[j] * y[j] if op == "mul" else T.max(x[j] * y[j] + x[j], 0)
                T.copy(z, Z[start])

    return elementwise


if __name__ == "__main__":
    check(elementwise)
