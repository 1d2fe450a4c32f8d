"""Sixteen positions of one head

Every core processes every 48th tile of positions of one head. A row of a head is 256 or 512 bytes, and the next position of
this head is 32 heads away in memory. Each head loads the tables again, which are as large as its own rows in float32, and
twice as large in float16. (They are read from L2, so HBM moves less.)

`num_stages=1` keeps the loop serial; otherwise the compiler would pipeline it (`pipeline-loops`).
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def rotary(heads, positions, dim, dtype, tile=16, cores=48):
    half = dim // 2
    tiles = heads * T.ceildiv(positions, tile)

    @T.prim_func
    def rotary(
        X: T.Tensor((positions, heads, dim), dtype),
        COS: T.Tensor((positions, dim // 2), "float32"),
        SIN: T.Tensor((positions, dim // 2), "float32"),
        Y: T.Tensor((positions, heads, dim), dtype),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, dim), dtype)
            y = T.alloc_shared((tile, dim), dtype)
            wide = T.alloc_shared((tile, dim), "float32")
            cos = T.alloc_shared((tile, half), "float32")
            sin = T.alloc_shared((tile, half), "float32")
            for i in T.Pipelined(T.ceildiv(tiles, cores), num_stages=1):
                place = i * cores + core
                if place < tiles:
                    head = place % heads
                    row = place // heads * tile
                    T.copy(X[row : row + tile, head, :], x)
                    T.copy(COS[row, 0], cos)
                    T.copy(SIN[row, 0], sin)
                    T.copy(x, wide)
                    for r, c in T.Parallel(tile, half):
                        y[r, c] = wide[r, c] * cos[r, c] - wide[r, c + half] * sin[r, c]
                    for r, c in T.Parallel(tile, half):
                        y[r, c + half] = wide[r, c + half] * cos[r, c] + wide[r, c] * sin[r, c]
                    T.copy(y, Y[row : row + tile, head, :])

    return rotary


if __name__ == "__main__":
    check(rotary)
