"""All tokens of a core at once

A core loads the scores of all its tokens at once, sorts them in place row after row, and executes each other operation with
one instruction for all of them. Only the selected scores need an exponential: the sum of the whole softmax cancels, because
the weights are divided by their own sum. Rows are loaded four at a time.

Removes cause: no overlap
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def choose(tokens, experts, count, L, chosen, shares, sums, parts, cores):
    """Selects the experts of each token, and computes their weights and each core's running count of tokens for each expert."""
    with T.Kernel(cores, is_npu=True) as (core, _):
        each = T.ceildiv(tokens, cores)
        wide = T.ceildiv(experts, 32) * 32
        x = T.alloc_shared((each, wide), "float32")
        pairs = T.alloc_shared((each, 2 * count), "float32")
        values = T.alloc_shared((each, count), "float32")
        numbers = T.alloc_shared((each, count), "float32")
        expert = T.alloc_shared((each, count), "int32")
        largest = T.alloc_shared((each, 1), "float32")
        least = T.alloc_shared((each, 1), "float32")
        total = T.alloc_shared((each, 1), "float32")
        mask = T.alloc_shared((each, experts), "float32")
        part = T.alloc_shared((1, experts), "float32")
        T.copy(L[core * each, 0], x[:, :experts])
        for t in T.serial(each):
            T.tile.topk(pairs[t, :], x[t, :], count, experts)
        T.deinterleave(pairs, values, numbers)
        T.vcast(numbers, expert)
        T.reduce_max(values, largest, dim=1)
        T.reduce_min(values, least, dim=1)
        for t, e in T.Parallel(each, experts):
            mask[t, e] = T.if_then_else((x[t, e] < least[t, 0]) | (core * each + t >= tokens), 0.0, 1.0)
        for t, j in T.Parallel(each, count):
            values[t, j] = T.exp(values[t, j] - largest[t, 0])
        T.reduce_sum(values, total, dim=1)
        for t, j in T.Parallel(each, count):
            values[t, j] = values[t, j] / total[t, 0]
        T.copy(values, shares[core * each, 0])
        T.copy(expert, chosen[core * each, 0])
        T.reduce_sum(mask, part, dim=0)
        T.cumsum(mask, mask, dim=0)
        T.copy(part, parts[core, 0])
        T.copy(mask, sums[core * each, 0])


@T.macro
def number(tokens, experts, count, chosen, sums, parts, core, cores, place, counts):
    """Computes the position of each slot: after all rows of earlier experts and earlier rows of the same expert."""
    each = T.ceildiv(tokens, cores)
    part = T.alloc_shared((cores, experts), "float32")
    rows = T.alloc_shared((1, experts), "float32")
    before = T.alloc_shared((1, experts), "float32")
    total = T.alloc_shared((1, experts), "int32")
    where = T.alloc_shared((each, experts), "float32")
    expert = T.alloc_shared((each, count), "int32")
    there = T.alloc_shared((each, count), "float32")
    T.copy(parts, part)
    T.copy(sums[core * each, 0], where)
    T.copy(chosen[core * each, 0], expert)
    T.reduce_sum(part, rows, dim=0)
    T.vcast(rows, total)
    if core == 0:
        T.copy(total[0, :], counts)
    for c, e in T.Parallel(cores, experts):
        part[c, e] = T.if_then_else(c < core, part[c, e], 0.0)
    T.reduce_sum(part, before, dim=0)
    T.vsub(before, rows, before)
    T.cumsum(rows, rows, dim=1)
    T.vadd(before, rows, before)
    for t, e in T.Parallel(each, experts):
        where[t, e] = where[t, e] + before[0, e] - 1.0
    T.gather(where, there, expert)
    T.vcast(there, place)


@tilelang.jit(target="npuir")
def moe_routing(tokens, experts, count, K, dtype, tile=4, cores=48):
    each = T.ceildiv(tokens, cores)

    @T.prim_func
    def moe_routing(
        L: T.Tensor((tokens, experts), "float32"),
        X: T.Tensor((tokens, K), dtype),
        shares: T.Tensor((tokens, count), "float32"),
        places: T.Tensor((tokens, count), "int32"),
        counts: T.Tensor((experts,), "int32"),
        Y: T.Tensor((tokens * count, K), dtype),
    ):
        chosen = T.alloc_global((tokens, count), "int32")
        sums = T.alloc_global((tokens, experts), "float32")
        parts = T.alloc_global((cores, experts), "float32")
        choose(tokens, experts, count, L, chosen, shares, sums, parts, cores)
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, K), dtype)
            place = T.alloc_shared((each, count), "int32")
            number(tokens, experts, count, chosen, sums, parts, core, cores, place, counts)
            T.copy(place, places[core * each, 0])
            for i in T.Pipelined(T.ceildiv(T.min(each, tokens - core * each), tile), num_stages=2):
                T.copy(X[core * each + i * tile, 0], x)
                for t, j in T.grid(T.min(tile, T.min(each, tokens - core * each) - i * tile), count):
                    T.copy(x[t, :], Y[place[i * tile + t, j], 0])

    return moe_routing


if __name__ == "__main__":
    check(moe_routing)
