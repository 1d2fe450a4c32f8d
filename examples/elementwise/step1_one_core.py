"""One core, one tile after the other

Tiles of both inputs are loaded to UB, `T.Parallel` states the computation for each element, and the compiler turns it into
vector instructions: one for the product, and two more for the chain. The kernel uses one core, and each pipe waits for the
previous one.
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
