"""Sixteen rows at a time

Sixteen rows, which fit with two slots, are loaded and widened by one instruction each, and a store writes sixteen rows that
are `scale` rows apart. MTE3 has no gaps.

Removes cause: small bursts
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
    tile = 16
    turns = rows // (tile * cores)
    rest = rows - turns * tile * cores
    piece = T.ceildiv(rest, cores)

    @T.prim_func
    def upsample(X: T.Tensor((rows, columns), dtype), Y: T.Tensor((rows, scale, scale * columns), dtype)):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, columns), dtype)
            wide = T.alloc_shared((tile, scale * columns), dtype)
            for i in T.Pipelined(turns, num_stages=2):
                row = (i * cores + core) * tile
                rows_of(tile, columns, scale, row, X, Y, x, wide)
            if rest:
                row = turns * tile * cores + core * piece
                rows_of(piece, columns, scale, row, X, Y, x[:piece, :], wide[:piece, :])

    return upsample


if __name__ == "__main__":
    check(upsample)
