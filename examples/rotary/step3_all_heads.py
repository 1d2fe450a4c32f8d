"""All heads of a position

The heads of a position are contiguous: a tile of two positions with all their heads is one run of memory, and it needs two
rows of the tables, whatever the number of heads. In UB all heads are multiplied by the same row, which V reads repeatedly
without a copy.

Removes cause: small bursts
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
def rotary(heads, positions, dim, dtype, tile=2, cores=48):
    half = dim // 2

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
            for i in T.Pipelined(T.ceildiv(positions, tile * cores), num_stages=1):
                row = (i * cores + core) * tile
                T.copy(X[row : row + tile, :, :], x)
                T.copy(COS[row : row + tile, :], cos[:, 0, :])
                T.copy(SIN[row : row + tile, :], sin[:, 0, :])
                turn(tile, heads, half, x, y, a, b, cos, sin)
                T.copy(y, Y[row : row + tile, :, :])

    return rotary


if __name__ == "__main__":
    check(rotary)
