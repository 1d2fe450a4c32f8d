"""One block for each core

A block for each tile that an expert could have makes four times as many blocks as needed: each of the others reads a count
and does nothing, but it has to start. One block for each core loops over the numbers of all tiles, and loads the next tile
while the rows of the previous one are stored.

Insight: a block has a start-up cost even if it has nothing to do.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@T.macro
def route(tokens, experts, K, X, R, gates):
    """Computes the weight of each expert for each token, 0 for all but two experts."""
    with T.Kernel(T.ceildiv(tokens, 64), is_npu=True) as (block, _):
        r = T.alloc_shared((experts, 256), "float16")
        x = T.alloc_shared((64, 256), "float16")
        logits = T.alloc_fragment((experts, 64), "float32")
        given = T.alloc_shared((experts, 64), "float32")
        rest = T.alloc_shared((experts, 64), "float32")
        first = T.alloc_shared((1, 64), "float32")
        second = T.alloc_shared((1, 64), "float32")
        total = T.alloc_shared((1, 64), "float32")
        for k in T.Pipelined(T.ceildiv(K, 256), num_stages=2):
            T.copy(R[0, k * 256], r)
            T.copy(X[block * 64, k * 256], x)
            T.gemm(r, x, logits, initC=(k == 0), b_transpose=True)
        T.copy(logits, given)
        T.reduce_max(given, first, dim=0)
        for e, t in T.Parallel(experts, 64):
            rest[e, t] = T.if_then_else(given[e, t] < first[0, t], given[e, t], -1e30)
        T.reduce_max(rest, second, dim=0)
        for e, t in T.Parallel(experts, 64):
            given[e, t] = T.if_then_else(given[e, t] < second[0, t], 0.0, T.exp(given[e, t] - first[0, t]))
        T.reduce_sum(given, total, dim=0)
        for e, t in T.Parallel(experts, 64):
            given[e, t] = given[e, t] / total[0, t]
        T.copy(given, gates[0, block * 64])


@T.macro
def permute(tokens, experts, K, X, gates, order, shares, counts, firsts, sorted_x):
    """Sorts the tokens of each expert by weight, the largest first, and gathers their rows of X."""
    with T.Kernel(experts, is_npu=True) as (expert, _):
        gate = T.alloc_shared((tokens,), "float32")
        pairs = T.alloc_shared((2 * tokens,), "float32")
        share = T.alloc_shared((tokens,), "float32")
        number = T.alloc_shared((tokens,), "float32")
        place = T.alloc_shared((tokens,), "int32")
        some = T.alloc_shared((1,), "float32")
        count = T.alloc_shared((1,), "int32")
        T.copy(gates[expert, 0], gate)
        T.tile.topk(pairs, gate, tokens, tokens)
        T.deinterleave(pairs, share, number)
        T.vcast(number, place)
        T.copy(share, shares[expert, 0])
        T.copy(place, order[expert, 0])
        for t in T.Parallel(tokens):
            number[t] = T.if_then_else(share[t] > 0.0, 1.0, 0.0)
        T.reduce_sum(number, some, dim=0)
        T.vcast(some, count)
        T.copy(count, counts[expert])
        for t in T.Parallel(tokens):
            number[t] = T.if_then_else(share[t] >= 0.5, 1.0, 0.0)
        T.reduce_sum(number, some, dim=0)
        T.vcast(some, count)
        T.copy(count, firsts[expert])
    with T.Kernel(experts * T.ceildiv(tokens, 32), is_npu=True) as (block, _):
        x = T.alloc_shared((32, K), "float16")
        place = T.alloc_shared((32,), "int32")
        expert = block // T.ceildiv(tokens, 32)
        row = block % T.ceildiv(tokens, 32) * 32
        if row < T.ceildiv(counts[expert], 128) * 128:
            T.copy(order[expert, row], place)
            for i in T.serial(32):
                T.copy(X[place[i], 0], x[i, :])
            T.copy(x, sorted_x[expert, row, 0])


@T.macro
def combine(tokens, N, parts, Y):
    """Adds the results of the two experts of each token."""
    with T.Kernel(48, is_npu=True) as (core, _):
        one = T.alloc_shared((16, 512), "float32")
        two = T.alloc_shared((16, 512), "float32")
        for i in T.Pipelined(T.ceildiv(T.ceildiv(tokens, 16) * T.ceildiv(N, 512) - core, 48), num_stages=2):
            row = (i * 48 + core) // T.ceildiv(N, 512) * 16
            column = (i * 48 + core) % T.ceildiv(N, 512) * 512
            T.copy(parts[0, row, column], one)
            T.copy(parts[1, row, column], two)
            T.vadd(one, two, one)
            T.copy(one, Y[row, column])


@tilelang.jit(target="npuir")
def mixture(tokens, experts, N, K, tile_M=128, tile_N=256, tile_K=256, cores=24):
    rows, columns = T.ceildiv(tokens, tile_M), T.ceildiv(N, tile_N)

    @T.prim_func
    def mixture(
        X: T.Tensor((tokens, K), "float16"),
        R: T.Tensor((experts, K), "float16"),
        W: T.Tensor((experts, K, N), "float16"),
        Y: T.Tensor((tokens, N), "float32"),
    ):
        gates = T.alloc_global((experts, tokens), "float32")
        order = T.alloc_global((experts, tokens), "int32")
        shares = T.alloc_global((experts, tokens), "float32")
        counts = T.alloc_global((experts,), "int32")
        firsts = T.alloc_global((experts,), "int32")
        sorted_x = T.alloc_global((experts, tokens, K), "float16")
        parts = T.alloc_global((2, tokens, N), "float32")
        route(tokens, experts, K, X, R, gates)
        permute(tokens, experts, K, X, gates, order, shares, counts, firsts, sorted_x)
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")
            share = T.alloc_shared((1, tile_M), "float32")
            column_of = T.alloc_shared((tile_M, 1), "float32")
            place = T.alloc_shared((tile_M,), "int32")
            for i in T.serial(T.ceildiv(experts * rows * columns - core, cores)):
                expert = (i * cores + core) // (rows * columns)
                row = (i * cores + core) // columns % rows * tile_M
                column = (i * cores + core) % columns * tile_N
                if row < counts[expert]:
                    for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=2):
                        T.copy(sorted_x[expert, row, k * tile_K], a)
                        T.copy(W[expert, k * tile_K, column], b)
                        T.gemm(a, b, c, initC=(k == 0))
                    T.copy(shares[expert, row], share)
                    for m in T.Parallel(tile_M):
                        column_of[m, 0] = share[0, m]
                    for m, n in T.Parallel(tile_M, tile_N):
                        c[m, n] = c[m, n] * column_of[m, 0]
                    T.copy(order[expert, row], place)
                    for m in T.serial(T.min(counts[expert] - row, tile_M)):
                        slot = T.if_then_else(row + m < firsts[expert], 0, 1)
                        T.copy(c[m, :], parts[slot, place[m], column])
        combine(tokens, N, parts, Y)

    return mixture


if __name__ == "__main__":
    check(mixture)
