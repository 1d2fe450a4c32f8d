"""One addition for each tile

A tile is summed in UB, without waits for other cores, and only one number for each tile is added in global memory.

Removes cause: atomic updates
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def products_of(n, X, Y, start, x, y, wide, products):
    T.copy(X[start : start + n], x)
    T.copy(Y[start : start + n], y)
    T.copy(x, wide)
    T.copy(y, products)
    for j in T.Parallel(n):
        products[j] = wide[j] * products[j]


@tilelang.jit(target="npuir")
def atomic_add(length, dtype, tile=2048, cores=48):
    @T.prim_func
    def atomic_add(X: T.Tensor((length,), dtype), Y: T.Tensor((length,), dtype), Z: T.Tensor((1,), "float32")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile,), dtype)
            y = T.alloc_shared((tile,), dtype)
            wide = T.alloc_shared((tile,), "float32")
            products = T.alloc_shared((tile,), "float32")
            one = T.alloc_shared((1,), "float32")
            for i in T.serial(T.ceildiv(length, tile * cores)):
                start = (i * cores + core) * tile
                products_of(tile, X, Y, start, x, y, wide, products)
                T.reduce_sum(products, one)
                T.atomic_add(Z, one)

    return atomic_add


if __name__ == "__main__":
    check(atomic_add)
