"""Overlapping pieces

Both loops over the pieces of a row load the next piece while V processes the current one. All pieces in the loops are full,
and the remainder of a row has a length that is known at compile time, so nothing has to be padded.

The compiler already pipelines the serial loop of the previous step (`pipeline-loops`), so the time hardly changes.
`T.Pipelined` states the pipelining in the source and sets the number of slots.

Insight: none. The step gains no time, because the compiler already pipelines the loop.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def sum_of(n, x, e, one, before, largest, total):
    T.copy(x, e)
    T.reduce_max(e, one)
    T.copy(largest, before)
    T.vmax(largest, one, largest)
    for j in T.Parallel(n):
        e[j] = T.exp(e[j] - largest[0])
    T.reduce_sum(e, one)
    for k in T.Parallel(1):
        total[k] = total[k] * T.exp(before[k] - largest[k]) + one[k]


@T.macro
def shares_of(n, x, e, largest, total):
    T.copy(x, e)
    for j in T.Parallel(n):
        x[j] = T.exp(e[j] - largest[0]) / total[0]


@tilelang.jit(target="npuir")
def softmax_long(rows, columns, dtype, tile=8192, cores=48):
    pieces = columns // tile
    rest = columns - pieces * tile

    @T.prim_func
    def softmax_long(X: T.Tensor((rows, columns), dtype), Y: T.Tensor((rows, columns), dtype)):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile,), dtype)
            e = T.alloc_shared((tile,), "float32")
            one = T.alloc_shared((1,), "float32")
            largest = T.alloc_shared((1,), "float32")
            total = T.alloc_shared((1,), "float32")
            before = T.alloc_shared((1,), "float32")
            for i in T.serial(T.ceildiv(rows, cores)):
                row = i * cores + core
                if row < rows:
                    T.fill(largest, -T.infinity("float32"))
                    T.fill(total, 0)
                    for j in T.Pipelined(pieces, num_stages=2):
                        T.copy(X[row, j * tile], x)
                        sum_of(tile, x, e, one, before, largest, total)
                    if rest:
                        T.copy(X[row, pieces * tile], x[:rest])
                        sum_of(rest, x[:rest], e[:rest], one, before, largest, total)
                    for j in T.Pipelined(pieces, num_stages=2):
                        T.copy(X[row, j * tile], x)
                        shares_of(tile, x, e, largest, total)
                        T.copy(x, Y[row, j * tile])
                    if rest:
                        T.copy(X[row, pieces * tile], x[:rest])
                        shares_of(rest, x[:rest], e[:rest], largest, total)
                        T.copy(x[:rest], Y[row, pieces * tile])

    return softmax_long


if __name__ == "__main__":
    check(softmax_long)
