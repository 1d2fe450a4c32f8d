"""Full tiles, double-buffered

The loop runs over rows that every core has, and its iterations overlap; the remaining rows are divided evenly among the
cores after the loop.

The compiler already pipelines the serial loop of the previous step (`pipeline-loops`), so the time hardly changes.
`T.Pipelined` states the pipelining in the source and sets the number of slots.

Insight: none. The step gains no time, because the compiler already pipelines the loop.
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
