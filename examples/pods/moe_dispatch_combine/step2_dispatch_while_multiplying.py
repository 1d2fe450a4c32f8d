"""Dispatch while multiplying

One kernel dispatches and multiplies, in chunks of 128 rows of each pair of cards. A Vector core that has put its rows of a
chunk signals the card that gets them; when all have come, the Cube cores multiply the chunk, and the Vector cores put the next
one.
"""

from problem import ROWS, check

import tilelang_npu as tilelang
import tilelang_npu.language as T

KEY = tilelang.PassConfigKey
CONFIGS = {KEY.TL_ASCEND_AUTO_CV_SYNC: False, KEY.TL_ASCEND_AUTO_SYNC: True, KEY.TL_ASCEND_MEMORY_PLANNING: True}


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def dispatch_and_multiply(rank, ranks, tokens, capacity, chosen, K, strip=8, tile_N=256, tile_K=128, cores=24):
    pairs, chunks, columns, lanes = tokens * chosen, capacity // ROWS, K // tile_N, 2 * cores // ranks

    @T.prim_func
    def dispatch_and_multiply(
        X: T.Tensor((tokens, K), "float16"),
        W: T.Tensor((K, K), "float16"),
        start: T.Tensor((ranks + 1,), "int32"),
        token: T.Tensor((pairs,), "int32"),
        G: T.Tensor((ranks, capacity, K), "float16"),
        N: T.Tensor((ranks,), "int32"),
        F: T.Tensor((chunks,), "int32"),
        P: T.Tensor((ranks, capacity, K), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, vid):
            with T.Scope("V"):
                tile = T.alloc_ub((strip, K), "float16")
                worker = core * 2 + vid
                card = worker % ranks  # so that all links are busy
                first = start[card]
                count = start[card + 1] - first
                if worker < ranks:
                    T.shmem_signal_op(N, rank, count + 1, 0, card)
                for j in T.serial(chunks):
                    for i in T.Pipelined(T.ceildiv(ROWS // strip, lanes), num_stages=2):
                        row = j * ROWS + (i * lanes + worker // ranks) * strip
                        if i * lanes + worker // ranks < ROWS // strip and row < count:
                            for r in T.serial(T.min(strip, count - row)):
                                T.copy(X[token[first + row + r], 0], tile[r, :])
                            T.shmem_ub_put_nbi(tile, G[rank, row, 0], T.min(strip, count - row) * K, card)
                    T.shmem_quiet()
                    T.shmem_signal_op(F, j, 1, 1, card)
                    T.shmem_signal_wait_until(F, j, 0, 2 * cores)  # from each Vector core that sends to this card
                    T.sync_all("Mix")
            with T.Scope("C"):
                a = T.alloc_L1((ROWS, tile_K), "float16")
                b = T.alloc_L1((tile_K, tile_N), "float16")
                c = T.alloc_L0C((ROWS, tile_N), "float32")
                for j in T.serial(chunks):
                    T.sync_all("Mix")
                    for i in T.serial(T.ceildiv(ranks * columns, cores)):
                        item = i * cores + core
                        other = item // columns
                        column = item % columns * tile_N
                        if item < ranks * columns and j * ROWS < N[other] - 1:
                            for k in T.Pipelined(K // tile_K, num_stages=2):
                                T.copy(G[other, j * ROWS, k * tile_K], a)
                                T.copy(W[k * tile_K, column], b)
                                T.gemm_v0(a, b, c, init=(k == 0))
                            T.copy(c, P[other, j * ROWS, column])

    return dispatch_and_multiply


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
    return [(dispatch_and_multiply(rank, ranks, tokens, capacity, chosen, K), ("X", "W", "start", "token", "G", "N", "F", "P")),
            (combine(rank, ranks, tokens, capacity, chosen, K), ("P", "place", "weight", "O"))]


if __name__ == "__main__":
    check(moe_dispatch_combine)
