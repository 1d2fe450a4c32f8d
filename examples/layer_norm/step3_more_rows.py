"""Twice as many rows in a tile

There are half as many instructions and loads, each twice as long, so their start-up costs are paid half as often.

Removes cause: small tiles
"""

from ladder import EPS, check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def rows_of(n, columns, x, e, square, mean, scale, w, b):
    T.copy(x, e)
    T.reduce_sum(e, mean, dim=-1)
    for r in T.Parallel(n):
        mean[r, 0] = mean[r, 0] * (1.0 / columns)
    for r, c in T.Parallel(n, columns):
        e[r, c] = e[r, c] - mean[r, 0]
    for r, c in T.Parallel(n, columns):
        square[r, c] = e[r, c] * e[r, c]
    T.reduce_sum(square, scale, dim=-1)
    for r in T.Parallel(n):
        scale[r, 0] = T.rsqrt(scale[r, 0] * (1.0 / columns) + EPS)
    for r, c in T.Parallel(n, columns):
        x[r, c] = e[r, c] * scale[r, 0] * w[0, c] + b[0, c]


@tilelang.jit(target="npuir")
def layer_norm(rows, columns, dtype, cores=48):
    tile = 8
    turns = rows // (tile * cores)
    rest = rows - turns * tile * cores
    piece = T.ceildiv(rest, cores)

    @T.prim_func
    def layer_norm(
        X: T.Tensor((rows, columns), dtype),
        W: T.Tensor((1, columns), dtype),
        B: T.Tensor((1, columns), dtype),
        Y: T.Tensor((rows, columns), dtype),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            narrow = T.alloc_shared((1, columns), dtype)
            w = T.alloc_shared((1, columns), "float32")
            b = T.alloc_shared((1, columns), "float32")
            x = T.alloc_shared((tile, columns), dtype)
            e = T.alloc_shared((tile, columns), "float32")
            square = T.alloc_shared((tile, columns), "float32")
            mean = T.alloc_shared((tile, 1), "float32")
            scale = T.alloc_shared((tile, 1), "float32")
            T.copy(W, narrow)
            T.copy(narrow, w)
            T.copy(B, narrow)
            T.copy(narrow, b)
            for i in T.Pipelined(turns, num_stages=2):
                row = (i * cores + core) * tile
                T.copy(X[row, 0], x)
                rows_of(tile, columns, x, e, square, mean, scale, w, b)
                T.copy(x, Y[row, 0])
            if rest:
                row = turns * tile * cores + core * piece
                T.copy(X[row, 0], x[:piece, :])
                rows_of(piece, columns, x[:piece, :], e[:piece, :], square[:piece, :], mean[:piece, :], scale[:piece, :], w, b)
                T.copy(x[:piece, :], Y[row, 0])

    return layer_norm


if __name__ == "__main__":
    check(layer_norm)
