"""Two passes

The first pass computes the maximum of a row, the second the sum: every tile is loaded to UB twice. `T.gather` takes the
logit of the label from the tile that contains it, so the scalar unit never has to read an index and wait for it.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def pick(rows, columns, e, first, label, picked):
    place = T.alloc_shared((rows, 1), "int32")
    there = T.alloc_shared((rows, 1), "int32")
    value = T.alloc_shared((rows, 1), "float32")
    for r in T.Parallel(rows):
        place[r, 0] = label[r, 0] - first
    for r in T.Parallel(rows):
        there[r, 0] = T.max(T.min(place[r, 0], columns - 1), 0)
    T.gather(e, value, there)
    for r in T.Parallel(rows):
        picked[r, 0] = T.if_then_else(place[r, 0] == there[r, 0], value[r, 0], picked[r, 0])


@T.macro
def largest_of(x, e, one, largest):
    T.copy(x, e)
    T.reduce_max(e, one, dim=-1)
    T.vmax(largest, one, largest)


@T.macro
def sum_of(rows, columns, x, first, e, one, largest, total, label, picked):
    T.copy(x, e)
    pick(rows, columns, e, first, label, picked)
    for r, c in T.Parallel(rows, columns):
        e[r, c] = T.exp(e[r, c] - largest[r, 0])
    T.reduce_sum(e, one, dim=-1)
    T.vadd(total, one, total)


@tilelang.jit(target="npuir")
def cross_entropy(rows, columns, dtype, lanes=1, tile=8192, cores=48):
    pieces = columns // tile
    rest = columns - pieces * tile

    @T.prim_func
    def cross_entropy(
        X: T.Tensor((rows, columns), dtype), L: T.Tensor((rows, 1), "int32"), Y: T.Tensor((rows, 1), "float32")
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((lanes, tile), dtype)
            label = T.alloc_shared((lanes, 1), "int32")
            e = T.alloc_shared((lanes, tile), "float32")
            one = T.alloc_shared((lanes, 1), "float32")
            largest = T.alloc_shared((lanes, 1), "float32")
            total = T.alloc_shared((lanes, 1), "float32")
            picked = T.alloc_shared((lanes, 1), "float32")
            for i in T.serial(T.ceildiv(rows, lanes * cores)):
                row = (i * cores + core) * lanes
                if row < rows:
                    T.copy(L[row, 0], label)
                    T.fill(largest, -T.infinity("float32"))
                    T.clear(total)
                    for j in T.serial(pieces):
                        T.copy(X[row, j * tile], x)
                        largest_of(x, e, one, largest)
                    if rest:
                        T.copy(X[row, pieces * tile], x[:, :rest])
                        largest_of(x[:, :rest], e[:, :rest], one, largest)
                    for j in T.serial(pieces):
                        T.copy(X[row, j * tile], x)
                        sum_of(lanes, tile, x, j * tile, e, one, largest, total, label, picked)
                    if rest:
                        T.copy(X[row, pieces * tile], x[:, :rest])
                        sum_of(lanes, rest, x[:, :rest], pieces * tile, e[:, :rest], one, largest, total, label, picked)
                    for r in T.Parallel(lanes):
                        one[r, 0] = largest[r, 0] + T.log(total[r, 0]) - picked[r, 0]
                    T.copy(one, Y[row, 0])

    return cross_entropy


if __name__ == "__main__":
    check(cross_entropy)
