"""Full tiles, double-buffered

The loop runs over tiles that are full on every core, so that loads, vector work and stores overlap; the remaining rows are
divided evenly among the cores after the loop.

The compiler already pipelines the serial loop of the previous step (`pipeline-loops`), so the time hardly changes.
`T.Pipelined` states the pipelining in the source and sets the number of slots.

Insight: none. The step gains no time, because the compiler already pipelines the loop.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def gate(n, columns, a, b, wa, wb):
    T.copy(a, wa)
    T.copy(b, wb)
    for r, c in T.Parallel(n, columns):
        a[r, c] = wa[r, c] / (1 + T.exp(-wa[r, c])) * wb[r, c]


@tilelang.jit(target="npuir")
def swiglu(rows, columns, dtype, cores=48):
    tile = 2
    turns = rows // (tile * cores)
    rest = rows - turns * tile * cores
    piece = T.ceildiv(rest, cores)

    @T.prim_func
    def swiglu(
        X: T.Tensor((rows, 2 * columns), dtype), Y: T.Tensor((rows, columns), dtype)
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((tile, columns), dtype)
            b = T.alloc_shared((tile, columns), dtype)
            wa = T.alloc_shared((tile, columns), "float32")
            wb = T.alloc_shared((tile, columns), "float32")
            for i in T.Pipelined(turns, num_stages=2):
                row = (i * cores + core) * tile
                T.copy(X[row, 0], a)
                T.copy(X[row, columns], b)
                gate(tile, columns, a, b, wa, wb)
                T.copy(a, Y[row, 0])
            if rest:
                row = turns * tile * cores + core * piece
                T.copy(X[row, 0], a[:piece, :])
                T.copy(X[row, columns], b[:piece, :])
                gate(piece, columns, a[:piece, :], b[:piece, :], wa[:piece, :], wb[:piece, :])
                T.copy(a[:piece, :], Y[row, 0])

    return swiglu


if __name__ == "__main__":
    check(swiglu)
