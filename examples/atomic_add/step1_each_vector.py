"""One addition for each vector

V sums 64 products, the most that one instruction reduces, and MTE3 sends the sum: one atomic addition of 4 bytes for each
256 bytes that are loaded. (One addition for each product, as a GPU kernel might do it, would take 64 times as many.) The
kernel is bound by MTE3 alone.
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
                for part in T.serial(tile // 64):
                    T.reduce_sum(products[part * 64 : (part + 1) * 64], one)
                    T.atomic_add(Z, one)

    return atomic_add


if __name__ == "__main__":
    check(atomic_add)
