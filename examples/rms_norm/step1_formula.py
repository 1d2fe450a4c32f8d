"""The formula, four rows at a time

The mean of the squares, its root, and the results: a reduction and four operations for each element, in float32. The weight
is loaded once, before the loop; a row is broadcast over a tile without being copied.
"""

from ladder import EPS, check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def rows_of(n, columns, x, e, square, scale, w):
    T.copy(x, e)
    for r, c in T.Parallel(n, columns):
        square[r, c] = e[r, c] * e[r, c]
    T.reduce_sum(square, scale, dim=-1)
    for r in T.Parallel(n):
        scale[r, 0] = T.rsqrt(scale[r, 0] * (1.0 / columns) + EPS)
    for r, c in T.Parallel(n, columns):
        x[r, c] = e[r, c] * scale[r, 0] * w[0, c]


@tilelang.jit(target="npuir")
def rms_norm(rows, columns, dtype, cores=48):
    tile = 4

    @T.prim_func
    def rms_norm(
        X: T.Tensor((rows, columns), dtype),
        W: T.Tensor((1, columns), dtype),
        Y: T.Tensor((rows, columns), dtype),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            narrow = T.alloc_shared((1, columns), dtype)
            w = T.alloc_shared((1, columns), "float32")
            x = T.alloc_shared((tile, columns), dtype)
            e = T.alloc_shared((tile, columns), "float32")
            square = T.alloc_shared((tile, columns), "float32")
            scale = T.alloc_shared((tile, 1), "float32")
            T.copy(W, narrow)
            T.copy(narrow, w)
            for i in T.serial(T.ceildiv(rows, tile * cores)):
                row = (i * cores + core) * tile
                T.copy(X[row, 0], x)
                rows_of(tile, columns, x, e, square, scale, w)
                T.copy(x, Y[row, 0])

    return rms_norm


if __name__ == "__main__":
    check(rms_norm)
