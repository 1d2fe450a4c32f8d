"""Full tiles, double-buffered

The loop runs over tiles that are full on every core, so that loads, vector work and stores overlap; the remaining positions
are divided evenly among the cores after the loop. In float16 a tile of three positions fits.

Removes cause: no overlap
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def turn(lanes, heads, half, x, y, a, b, cos, sin):
    T.copy(x[:, :, :half], a)
    T.copy(x[:, :, half:], b)
    for r, h, c in T.Parallel(lanes, heads, half):
        y[r, h, c] = a[r, h, c] * cos[r, 0, c] - b[r, h, c] * sin[r, 0, c]
    for r, h, c in T.Parallel(lanes, heads, half):
        y[r, h, c + half] = b[r, h, c] * cos[r, 0, c] + a[r, h, c] * sin[r, 0, c]


@tilelang.jit(target="npuir")
def rotary(heads, positions, dim, dtype, cores=48):
    half = dim // 2
    tile = 2 if dtype == "float32" else 3
    turns = positions // (tile * cores)
    rest = positions - turns * tile * cores
    piece = T.ceildiv(rest, cores)

    @T.prim_func
    def rotary(
        X: T.Tensor((positions, heads, dim), dtype),
        COS: T.Tensor((positions, dim // 2), "float32"),
        SIN: T.Tensor((positions, dim // 2), "float32"),
        Y: T.Tensor((positions, heads, dim), dtype),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, heads, dim), dtype)
            y = T.alloc_shared((tile, heads, dim), dtype)
            a = T.alloc_shared((tile, heads, half), "float32")
            b = T.alloc_shared((tile, heads, half), "float32")
            cos = T.alloc_shared((tile, 1, half), "float32")
            sin = T.alloc_shared((tile, 1, half), "float32")
            for i in T.Pipelined(turns, num_stages=2):
                row = (i * cores + core) * tile
                T.copy(X[row : row + tile, :, :], x)
                T.copy(COS[row : row + tile, :], cos[:, 0, :])
                T.copy(SIN[row : row + tile, :], sin[:, 0, :])
                turn(tile, heads, half, x, y, a, b, cos, sin)
                T.copy(y, Y[row : row + tile, :, :])
            if rest:
                row = turns * tile * cores + core * piece
                T.copy(X[row : row + piece, :, :], x[:piece, :, :])
                T.copy(COS[row : row + piece, :], cos[:piece, 0, :])
                T.copy(SIN[row : row + piece, :], sin[:piece, 0, :])
                turn(piece, heads, half, x[:piece, :, :], y[:piece, :, :], a[:piece, :, :], b[:piece, :, :],
                     cos[:piece, :, :], sin[:piece, :, :])
                T.copy(y[:piece, :, :], Y[row : row + piece, :, :])

    return rotary


if __name__ == "__main__":
    check(rotary)
