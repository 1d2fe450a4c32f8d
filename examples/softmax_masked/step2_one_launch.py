"""One launch

The masked scores stay in UB, where the softmax reads them.

Removes cause: separate launches
"""

from ladder import SCALE, check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def rows_of(n, columns, x, m, wide, e, largest, total):
    T.copy(x, e)
    T.copy(m, wide)
    for r, c in T.Parallel(n, columns):
        e[r, c] = e[r, c] * SCALE + wide[0, c]
    T.reduce_max(e, largest, dim=-1)
    for r, c in T.Parallel(n, columns):
        e[r, c] = T.exp(e[r, c] - largest[r, 0])
    T.reduce_sum(e, total, dim=-1)
    for r, c in T.Parallel(n, columns):
        x[r, c] = e[r, c] / total[r, 0]


@tilelang.jit(target="npuir")
def softmax_masked(batch, rows, columns, dtype, tile=4, cores=48):
    tiles = batch * T.ceildiv(rows, tile)

    @T.prim_func
    def softmax_masked(
        X: T.Tensor((batch, rows, columns), dtype),
        M: T.Tensor((batch, columns), dtype),
        Y: T.Tensor((batch, rows, columns), dtype),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, columns), dtype)
            m = T.alloc_shared((1, columns), dtype)
            wide = T.alloc_shared((1, columns), "float32")
            e = T.alloc_shared((tile, columns), "float32")
            largest = T.alloc_shared((tile, 1), "float32")
            total = T.alloc_shared((tile, 1), "float32")
            for i in T.serial(T.ceildiv(tiles, cores)):
                place = i * cores + core
                if place < tiles:
                    sentence = place // T.ceildiv(rows, tile)
                    row = place % T.ceildiv(rows, tile) * tile
                    T.copy(X[sentence, row : row + tile, :], x)
                    T.copy(M[sentence, 0], m)
                    rows_of(tile, columns, x, m, wide, e, largest, total)
                    T.copy(x, Y[sentence, row : row + tile, :])

    return softmax_masked


if __name__ == "__main__":
    check(softmax_masked)
