"""One core, one tile after the other

Tiles of both come to UB, `T.Parallel` says what becomes of each element, and the compiler makes vector instructions of it:
one for the product, and two more for the chain. One core, and each pipe waits for the one before it.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def elementwise(length, dtype, op, tile=2048):
    @T.prim_func
    def elementwise(X: T.Tensor((length,), dtype), Y: T.Tensor((length,), dtype), Z: T.Tensor((length,), dtype)):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((tile,), dtype)
            y = T.alloc_shared((tile,), dtype)
            z = T.alloc_shared((tile,), dtype)
            for i in T.serial(T.ceildiv(length, tile)):
                start = i * tile
                T.copy(X[start], x)
                T.copy(Y[start], y)
                for j in T.Parallel(tile):
                    z[j] = x[j] * y[j] if op == "mul" else T.max(x[j] * y[j] + x[j], 0)
                T.copy(z, Z[start])

    return elementwise


if __name__ == "__main__":
    check(elementwise)
