"""Double buffering

The next tile is loaded while V processes the current one (`num_stages=2`). In float16 UB has room for tiles of twice the
length.

Removes cause: no overlap
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
def sum_of(rows, columns, x, first, e, one, before, largest, total, label, picked):
    T.copy(x, e)
    pick(rows, columns, e, first, label, picked)
    T.reduce_max(e, one, dim=-1)
    T.copy(largest, before)
    T.vmax(largest, one, largest)
    for r, c in T.Parallel(rows, columns):
        e[r, c] = T.exp(e[r, c] - largest[r, 0])
    T.reduce_sum(e, one, dim=-1)
    for r in T.Parallel(rows):
        total[r, 0] = total[r, 0] * T.exp(before[r, 0] - largest[r, 0]) + one[r, 0]


@tilelang.jit(target="npuir")
def cross_entropy(rows, columns, dtype, lanes=8, cores=48):
    tile = 1024 if dtype == "float32" else 2048
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
            before = T.alloc_shared((lanes, 1), "float32")
            for i in T.serial(T.ceildiv(rows, lanes * cores)):
                row = (i * cores + core) * lanes
                if row < rows:
                    T.copy(L[row, 0], label)
                    T.fill(largest, -T.infinity("float32"))
                    T.clear(total)
                    for j in T.Pipelined(pieces, num_stages=2):
                        T.copy(X[row, j * tile], x)
                        sum_of(lanes, tile, x, j * tile, e, one, before, largest, total, label, picked)
                    if rest:
                        T.copy(X[row, pieces * tile], x[:, :rest])
                        sum_of(lanes, rest, x[:, :rest], pieces * tile, e[:, :rest], one, before, largest, total, label, picked)
                    for r in T.Parallel(lanes):
                        one[r, 0] = largest[r, 0] + T.log(total[r, 0]) - picked[r, 0]
                    T.copy(one, Y[row, 0])

    return cross_entropy


if __name__ == "__main__":
    check(cross_entropy)
