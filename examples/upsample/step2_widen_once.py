"""One widened row, stored several times

The `scale` rows of a group are equal, so one is computed and is stored `scale` times. A quarter, or a ninth, of the number
of stored elements is loaded.

Insight: the rows of a group are equal. The profile sees tiles that are loaded one after the other, but not that they are
the same tile.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def rows_of(n, columns, scale, row, X, Y, x, wide):
    T.copy(X[row, 0], x)
    for r, c, d in T.Parallel(n, columns, scale):
        wide[r, c * scale + d] = x[r, c]
    for k in T.unroll(scale):
        T.copy(wide, Y[row : row + n, k, :])


@tilelang.jit(target="npuir")
def upsample(rows, columns, scale, dtype, cores=48):
    tile = 1

    @T.prim_func
    def upsample(X: T.Tensor((rows, columns), dtype), Y: T.Tensor((rows, scale, scale * columns), dtype)):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, columns), dtype)
            wide = T.alloc_shared((tile, scale * columns), dtype)
            for i in T.serial(T.ceildiv(rows, tile * cores)):
                row = (i * cores + core) * tile
                rows_of(tile, columns, scale, row, X, Y, x, wide)

    return upsample


if __name__ == "__main__":
    check(upsample)
