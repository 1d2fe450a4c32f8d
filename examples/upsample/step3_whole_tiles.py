"""Whole tiles, two of them under way

Rows that every core has overlap, and the rest is divided after them, as many rows on every core.

The compiler pipelines the serial loop of the step before by itself (`pipeline-loops`), so that the time is about the same.
Here the source says so, and chooses the number of slots.

To know: nothing that wins time; the compiler does it without being told.
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
