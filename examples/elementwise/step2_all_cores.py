"""All cores

Every core processes every 48th tile. The cores share no data and need no synchronisation: there are 48 times as many
requests in flight, and HBM becomes the bound.

Removes cause: few blocks
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def elementwise(length, dtype, op, tile=2048, cores=48):
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
