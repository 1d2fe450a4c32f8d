"""Operations moved to the end of the row

In float16 V is always busy, and twelve of its seventeen instructions for a tile process one number for each row: each has
the same start-up cost as an instruction on a whole tile. They are not needed for each tile. Each tile gets its own maximum
and sum, in a row of small buffers, independent of other tiles; the positions of all labels in tiles are computed at the
beginning of the row; and at its end the results of all tiles are combined at once. The maximum of a tile is also computed
in float16, with half as many vectors.

Insight: the maxima and sums of all tiles can be combined at once when a row ends.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def sums_of(rows, columns, x, e, narrow, place, value, largest, total):
    T.reduce_max(x, narrow, dim=-1)
    T.copy(narrow, largest)
    T.copy(x, e)
    T.gather(e, value, place)
    for r, c in T.Parallel(rows, columns):
        e[r, c] = T.exp(e[r, c] - largest[r, 0])
    T.reduce_sum(e, total, dim=-1)


@tilelang.jit(target="npuir")
def cross_entropy(rows, columns, dtype, lanes=8, cores=48):
    tile = 1024 if dtype == "float32" else 2048
    pieces = columns // tile
    rest = columns - pieces * tile
    parts = T.ceildiv(columns, tile)

    @T.prim_func
    def cross_entropy(
        X: T.Tensor((rows, columns), dtype), L: T.Tensor((rows, 1), "int32"), Y: T.Tensor((rows, 1), "float32")
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((lanes, tile), dtype)
            e = T.alloc_shared((lanes, tile), "float32")
            narrow = T.alloc_shared((lanes, 1), dtype)
            label = T.alloc_shared((lanes, 1), "int32")
            place = T.alloc_shared((parts, lanes, 1), "int32")
            value = T.alloc_shared((parts, lanes, 1), "float32")
            largest = T.alloc_shared((parts, lanes, 1), "float32")
            total = T.alloc_shared((parts, lanes, 1), "float32")
            m = T.alloc_shared((1, lanes, 1), "float32")
            s = T.alloc_shared((1, lanes, 1), "float32")
            for i in T.serial(T.ceildiv(rows, lanes * cores)):
                row = (i * cores + core) * lanes
                if row < rows:
                    T.copy(L[row, 0], label)
                    for j, r in T.Parallel(parts, lanes):
                        place[j, r, 0] = T.max(T.min(label[r, 0] - j * tile, tile - 1), 0)
                    for j in T.Pipelined(pieces, num_stages=2):
                        T.copy(X[row, j * tile], x)
                        sums_of(lanes, tile, x, e, narrow, place[j, :, :], value[j, :, :], largest[j, :, :], total[j, :, :])
                    if rest:
                        T.copy(X[row, pieces * tile], x[:, :rest])
                        sums_of(lanes, rest, x[:, :rest], e[:, :rest], narrow, place[pieces, :, :], value[pieces, :, :],
                                largest[pieces, :, :], total[pieces, :, :])
                    T.reduce_max(largest, m, dim=0)
                    for j, r in T.Parallel(parts, lanes):
                        total[j, r, 0] = total[j, r, 0] * T.exp(largest[j, r, 0] - m[0, r, 0])
                    T.reduce_sum(total, s, dim=0)
                    for j, r in T.Parallel(parts, lanes):
                        value[j, r, 0] = T.if_then_else(label[r, 0] - j * tile == place[j, r, 0], value[j, r, 0], 0)
                    for r in T.Parallel(lanes):
                        m[0, r, 0] = m[0, r, 0] + T.log(s[0, r, 0])
                    T.reduce_sum(value, s, dim=0)
                    for r in T.Parallel(lanes):
                        m[0, r, 0] = m[0, r, 0] - s[0, r, 0]
                    T.copy(m[0, :, :], Y[row, 0])

    return cross_entropy


if __name__ == "__main__":
    check(cross_entropy)
