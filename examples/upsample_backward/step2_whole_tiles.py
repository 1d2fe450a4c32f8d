"""Full tiles, double-buffered

The loop runs over rows that every core has, and its iterations overlap; the remaining rows are divided among the cores
after the loop.

The compiler already pipelines the serial loop of the previous step (`pipeline-loops`), so the time hardly changes.
`T.Pipelined` states the pipelining in the source and sets the number of slots.

Insight: none. The step gains no time, because the compiler already pipelines the loop.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def rows_of(n, columns, scale, row, G, DX, g, sums, x):
    T.copy(G[row, 0, 0], g)
    for r, c in T.Parallel(n, scale * columns):
        sums[r, c] = g[r, 0, c] + g[r, 1, c]
    if scale == 3:
        for r, c in T.Parallel(n, scale * columns):
            sums[r, c] = sums[r, c] + g[r, 2, c]
    for r, c in T.Parallel(n, columns):
        if scale == 2:
            x[r, c] = sums[r, 2 * c] + sums[r, 2 * c + 1]
        else:
            x[r, c] = sums[r, 3 * c] + sums[r, 3 * c + 1] + sums[r, 3 * c + 2]
    T.copy(x, DX[row, 0])


@tilelang.jit(target="npuir")
def upsample_backward(rows, columns, scale, dtype, cores=48):
    tile = 1
    turns = rows // (tile * cores)
    rest = rows - turns * tile * cores
    piece = T.ceildiv(rest, cores)

    @T.prim_func
    def upsample_backward(G: T.Tensor((rows, scale, scale * columns), dtype), DX: T.Tensor((rows, columns), dtype)):
        with T.Kernel(cores, is_npu=True) as (core, _):
            g = T.alloc_shared((tile, scale, scale * columns), dtype)
            sums = T.alloc_shared((tile, scale * columns), dtype)
            x = T.alloc_shared((tile, columns), dtype)
            for i in T.Pipelined(turns, num_stages=2):
                row = (i * cores + core) * tile
                rows_of(tile, columns, scale, row, G, DX, g, sums, x)
            if rest:
                row = turns * tile * cores + core * piece
                rows_of(piece, columns, scale, row, G, DX, g[:piece, :, :], sums[:piece, :], x[:piece, :])

    return upsample_backward


if __name__ == "__main__":
    check(upsample_backward)
