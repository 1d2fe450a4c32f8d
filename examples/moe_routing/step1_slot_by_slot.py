"""Slot by slot

Three launches implement the definition directly. The first processes token after token: softmax, the eight largest values,
their weights. The second assigns a position to each of a token's eight slots: one core counts tokens for each expert with
the scalar unit, and passes over all slots twice, since the rows of an expert start after those of all previous experts. The
third processes slot after slot: it loads the row, and stores it at its position.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def choose(tokens, experts, count, L, chosen, shares, cores):
    """Selects the experts of each token, and computes their weights."""
    with T.Kernel(cores, is_npu=True) as (core, _):
        x = T.alloc_shared((experts,), "float32")
        some = T.alloc_shared((1,), "float32")
        pairs = T.alloc_shared((2 * count,), "float32")
        values = T.alloc_shared((count,), "float32")
        numbers = T.alloc_shared((count,), "float32")
        expert = T.alloc_shared((count,), "int32")
        for i in T.serial(T.ceildiv(tokens - core, cores)):
            token = i * cores + core
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
            T.reduce_sum(values, some, dim=0)
            for e in T.Parallel(count):
                values[e] = values[e] / some[0]
            T.copy(values, shares[token, 0])
            T.copy(expert, chosen[token, 0])


@T.macro
def number(tokens, experts, count, chosen, places, counts):
    """Computes the position of each slot, and the number of rows of each expert."""
    with T.Kernel(1, is_npu=True) as (_, _):
        expert = T.alloc_shared((64, count), "int32")
        place = T.alloc_shared((64, count), "int32")
        rows = T.alloc_shared((experts,), "int32")
        following = T.alloc_shared((experts,), "int32")
        T.clear(rows)
        for i in T.serial(T.ceildiv(tokens, 64)):
            T.copy(chosen[i * 64, 0], expert)
            for t, j in T.grid(T.min(64, tokens - i * 64), count):
                rows[expert[t, j]] = rows[expert[t, j]] + 1
        T.copy(rows, counts)
        following[0] = 0
        for e in T.serial(experts - 1):
            following[e + 1] = following[e] + rows[e]
        for i in T.serial(T.ceildiv(tokens, 64)):
            T.copy(chosen[i * 64, 0], expert)
            for t, j in T.grid(T.min(64, tokens - i * 64), count):
                place[t, j] = following[expert[t, j]]
                following[expert[t, j]] = following[expert[t, j]] + 1
            T.copy(place, places[i * 64, 0])


@tilelang.jit(target="npuir")
def moe_routing(tokens, experts, count, K, dtype, cores=48):
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
        choose(tokens, experts, count, L, chosen, shares, cores)
        number(tokens, experts, count, chosen, places, counts)
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_shared((1, K), dtype)
            for i in T.serial(T.ceildiv(tokens * count - core, cores)):
                slot = i * cores + core
                T.copy(X[slot // count, 0], x)
                T.copy(x, Y[places[slot // count, slot % count], 0])

    return moe_routing


if __name__ == "__main__":
    check(moe_routing)
