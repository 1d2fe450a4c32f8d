"""Eight rows at a time

The same lines for a tile of eight rows. The reductions along the last axis of the tile give a column, and the compiler
subtracts the column from the tile with a broadcast, without expanding the column to a tile.

Removes cause: small tiles
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def rows_of(n, columns, x, e, largest, total):
    T.copy(x, e)
    T.reduce_max(e, largest, dim=-1)
    for r, c in T.Parallel(n, columns):
        e[r, c] = T.exp(e[r, c] - largest[r, 0])
    T.reduce_sum(e, total, dim=-1)
    for r, c in T.Parallel(n, columns):
        x[r, c] = e[r, c] / total[r, 0]


@tilelang.jit(target="npuir")
def softmax(rows, columns, dtype, cores=48):
    tile = 8
    turns = rows // (tile * cores)
    rest = rows - turns * tile * cores
    piece = T.ceildiv(rest, cores)

    @T.prim_func
    def softmax(X: T.Tensor((rows, columns), dtype), Y: T.Tensor((rows, columns), dtype)):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, columns), dtype)
            e = T.alloc_shared((tile, columns), "float32")
            largest = T.alloc_shared((tile, 1), "float32")
            total = T.alloc_shared((tile, 1), "float32")
            for i in T.Pipelined(turns, num_stages=2):
                row = (i * cores + core) * tile
                T.copy(X[row, 0], x)
                rows_of(tile, columns, x, e, largest, total)
                T.copy(x, Y[row, 0])
            if rest:
                row = turns * tile * cores + core * piece
                T.copy(X[row, 0], x[:piece, :])
                rows_of(piece, columns, x[:piece, :], e[:piece, :], largest[:piece, :], total[:piece, :])
                T.copy(x[:piece, :], Y[row, 0])

    return softmax


if __name__ == "__main__":
    check(softmax)
