"""As many rows as fit in UB

In float16 a tile takes half as many bytes of UB, so it can have sixteen rows. There are half as many instructions, and
fewer waits between the pipes. In float32 a second slot of sixteen rows does not fit (`explain()` says so, and the loop
would not overlap), so the tile keeps eight rows.

Removes cause: small tiles

Insight: no kernel is faster than HBM. The profile estimates for a third slot a time below that in which HBM moves these
bytes, because the model's rates are means over the whole launch; this estimate cannot be reached. The next advice, about
small tiles, is this step.
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
    tile = 8 if dtype == "float32" else 16
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
