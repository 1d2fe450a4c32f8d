"""Double buffering of rows

The row of the next token is loaded while that of the previous one is stored.

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
        x = T.alloc_shared((experts,), "float32")
        some = T.alloc_shared((1,), "float32")
        pairs = T.alloc_shared((2 * count,), "float32")
        values = T.alloc_shared((count,), "float32")
        numbers = T.alloc_shared((count,), "float32")
        expert = T.alloc_shared((count,), "int32")
        mask = T.alloc_shared((each, experts), "float32")
        part = T.alloc_shared((1, experts), "float32")
        T.clear(mask)
        for t in T.serial(T.min(each, tokens - core * each)):
            token = core * each + t
            T.copy(L[token, 0], x)
            T.reduce_max(x, some, dim=0)
            for e in T.Parallel(experts):
                x[e] = T.exp(x[e] - some[0])
            T.reduce_sum(x, some, dim=0)
            for e in T.Parallel(experts):
                x[e] = x[e] / some[0]
            T.tile.topk(pairs, x, count, experts)
            T.deinterleave(pairs, values, numbers)
            T.vcast(numbers, expert)
            T.reduce_min(values, some, dim=0)
            for e in T.Parallel(experts):
                mask[t, e] = T.if_then_else(x[e] < some[0], 0.0, 1.0)
            T.reduce_sum(values, some, dim=0)
            for e in T.Parallel(count):
                values[e] = values[e] / some[0]
            T.copy(values, shares[token, 0])
            T.copy(expert, chosen[token, 0])
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
def moe_routing(tokens, experts, count, K, dtype, cores=48):
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
            x = T.alloc_shared((1, K), dtype)
            place = T.alloc_shared((each, count), "int32")
            number(tokens, experts, count, chosen, sums, parts, core, cores, place, counts)
            T.copy(place, places[core * each, 0])
            for t in T.Pipelined(T.min(each, tokens - core * each), num_stages=2):
                T.copy(X[core * each + t, 0], x)
                for j in T.serial(count):
                    T.copy(x, Y[place[t, j], 0])

    return moe_routing


if __name__ == "__main__":
    check(moe_routing)
