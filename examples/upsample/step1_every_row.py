"""Each row of the result separately

A row is loaded, each of its elements is written `scale` times in UB, and the row is stored; then the same is repeated for
the next row of the result, which is equal. Index arithmetic by element, `x[r, c // scale]`, is not vectorised if the scale
is not a power of two, as `explain()` says; a loop over the digits of the index, `c * scale + d`, is.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def rows_of(n, columns, scale, row, X, Y, x, wide):
    for k in T.serial(scale):
        T.copy(X[row, 0], x)
        for r, c, d in T.Parallel(n, columns, scale):
            wide[r, c * scale + d] = x[r, c]
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
