"""Blocking

A kernel puts the rows of each token to the cards of its experts, and their number. After a barrier another kernel multiplies
them; it reads how many there are from each card. After another barrier each card gets the products of its tokens and adds them.
"""

from problem import ROWS, check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def dispatch(rank, ranks, tokens, capacity, chosen, K, strip=8, cores=48):
    pairs, lanes = tokens * chosen, cores // ranks

    @T.prim_func
    def dispatch(
        X: T.Tensor((tokens, K), "float16"),
        start: T.Tensor((ranks + 1,), "int32"),
        token: T.Tensor((pairs,), "int32"),
        G: T.Tensor((ranks, capacity, K), "float16"),
        N: T.Tensor((ranks,), "int32"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            tile = T.alloc_shared((strip, K), "float16")
            card = core % ranks  # so that all links are busy
            first = start[card]
            count = start[card + 1] - first
            for i in T.Pipelined(T.ceildiv(T.ceildiv(count, strip), lanes), num_stages=2):
                row = (i * lanes + core // ranks) * strip
                if row < count:
                    for r in T.serial(T.min(strip, count - row)):
                        T.copy(X[token[first + row + r], 0], tile[r, :])
                    T.shmem_ub_put_nbi(tile, G[rank, row, 0], T.min(strip, count - row) * K, card)
            if core < ranks:
                T.shmem_signal_op(N, rank, count + 1, 0, card)

    return dispatch


@tilelang.jit(target="npuir")
def multiply(ranks, capacity, K, tile_N=256, tile_K=128, cores=24):
    columns = K // tile_N
    items = capacity // ROWS * ranks * columns

    @T.prim_func
    def multiply(
        G: T.Tensor((ranks, capacity, K), "float16"),
        N: T.Tensor((ranks,), "int32"),
        W: T.Tensor((K, K), "float16"),
        P: T.Tensor((ranks, capacity, K), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((ROWS, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((ROWS, tile_N), "float32")
            for i in T.serial(T.ceildiv(items, cores)):
                item = i * cores + core
                card = item // columns % ranks
                row = item // columns // ranks * ROWS
                column = item % columns * tile_N
                if item < items and row < N[card] - 1:
                    for k in T.Pipelined(K // tile_K, num_stages=2):
                        T.copy(G[card, row, k * tile_K], a)
                        T.copy(W[k * tile_K, column], b)
                        T.gemm(a, b, c, initC=(k == 0))
                    T.copy(c, P[card, row, column])

    return multiply


@tilelang.jit(target="npuir")
def combine(rank, ranks, tokens, capacity, chosen, K, cores=48):
    pairs = tokens * chosen

    @T.prim_func
    def combine(
        P: T.Tensor((ranks, capacity, K), "float16"),
        place: T.Tensor((pairs, 2), "int32"),
        weight: T.Tensor((pairs,), "float32"),
        O: T.Tensor((tokens, K), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            part = T.alloc_shared((chosen, 1, K), "float16")
            wide = T.alloc_shared((1, K), "float32")
            total = T.alloc_shared((1, K), "float32")
            out = T.alloc_shared((1, K), "float16")
            for i in T.Pipelined(T.ceildiv(tokens, cores), num_stages=2):
                one = i * cores + core
                if one < tokens:
                    T.clear(total)
                    for j in T.serial(chosen):
                        pair = one * chosen + j
                        T.shmem_ub_get_nbi(part[j, :, :], P[rank, place[pair, 1], 0], K, place[pair, 0])
                    for j in T.serial(chosen):
                        T.copy(part[j, :, :], wide)
                        T.vmul(wide, weight[one * chosen + j], wide)
                        T.vadd(total, wide, total)
                    T.copy(total, out)
                    T.copy(out, O[one, 0])

    return combine


def moe_dispatch_combine(rank, ranks, tokens, capacity, chosen, K):
    return [(dispatch(rank, ranks, tokens, capacity, chosen, K), ("X", "start", "token", "G", "N")),
            (multiply(ranks, capacity, K), "GNWP"),
            (combine(rank, ranks, tokens, capacity, chosen, K), ("P", "place", "weight", "O"))]


if __name__ == "__main__":
    check(moe_dispatch_combine)
