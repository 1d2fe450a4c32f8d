"""Return while multiplying

One kernel does all. When the Cube cores have multiplied a chunk, each card signals all others, and the Vector cores get their
rows of the products, two chunks after they have put the rows. At the end they add the products in local memory. Twelve strips
of 11 rows divide a chunk evenly between the six Vector cores that serve a card. Rows of 256 elements are whole lines of L2.
"""

from problem import ROWS, check

import tilelang_npu as tilelang
import tilelang_npu.language as T

KEY = tilelang.PassConfigKey
CONFIGS = {KEY.TL_ASCEND_AUTO_CV_SYNC: False, KEY.TL_ASCEND_AUTO_SYNC: True, KEY.TL_ASCEND_MEMORY_PLANNING: True}


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def dispatch_multiply_combine(rank, ranks, tokens, capacity, chosen, K, strip=11, tile_N=256, tile_K=256, cores=24):
    pairs, chunks, columns, lanes = tokens * chosen, capacity // ROWS, K // tile_N, 2 * cores // ranks

    @T.prim_func
    def dispatch_multiply_combine(
        X: T.Tensor((tokens, K), "float16"),
        W: T.Tensor((K, K), "float16"),
        start: T.Tensor((ranks + 1,), "int32"),
        token: T.Tensor((pairs,), "int32"),
        G: T.Tensor((ranks, capacity, K), "float16"),
        N: T.Tensor((ranks,), "int32"),
        F: T.Tensor((chunks,), "int32"),
        P: T.Tensor((ranks, capacity, K), "float16"),
        Y: T.Tensor((ranks, capacity, K), "float16"),
        E: T.Tensor((ranks,), "int32"),
        place: T.Tensor((pairs, 2), "int32"),
        weight: T.Tensor((pairs,), "float32"),
        O: T.Tensor((tokens, K), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, vid):
            with T.Scope("V"):
                tile = T.alloc_ub((strip, K), "float16")
                back = T.alloc_ub((strip, K), "float16")
                worker = core * 2 + vid
                card = worker % ranks  # so that all links are busy
                first = start[card]
                count = start[card + 1] - first
                if worker < ranks:
                    T.shmem_signal_op(N, rank, count + 1, 0, card)
                for j in T.serial(chunks + 2):
                    if j >= 2:
                        T.shmem_signal_wait_until(E, card, 3, j - 1)  # the products of chunk j - 2 are complete
                    for i in T.Pipelined(T.ceildiv(T.ceildiv(ROWS, strip), lanes), num_stages=2):
                        row = (i * lanes + worker // ranks) * strip  # in the chunk
                        size = T.min(strip, ROWS - row)
                        put = j * ROWS + row
                        if row < ROWS and put < count:
                            rows = T.min(size, count - put)
                            for r in T.serial(rows):
                                T.copy(X[token[first + put + r], 0], tile[r, :])
                            T.shmem_ub_put_nbi(tile, G[rank, put, 0], rows * K, card)
                        done = put - 2 * ROWS
                        if row < ROWS and done >= 0 and done < count:
                            rows = T.min(size, count - done)
                            T.shmem_ub_get_nbi(back, P[rank, done, 0], rows * K, card)
                            T.copy(back[0:rows, :], Y[card, done, 0])
                    if j < chunks:
                        T.shmem_quiet()
                        T.shmem_signal_op(F, j, 1, 1, card)
                        T.shmem_signal_wait_until(F, j, 0, 2 * cores)  # from each Vector core that sends to this card
                    if j <= chunks:
                        T.sync_all("Mix")
                        if worker < ranks:
                            T.shmem_signal_op(E, rank, j, 0, card)  # the Cube cores have multiplied chunk j - 1
                T.sync_all()
                part = T.alloc_ub((chosen, 1, K), "float16")
                wide = T.alloc_ub((1, K), "float32")
                total = T.alloc_ub((1, K), "float32")
                out = T.alloc_ub((1, K), "float16")
                for i in T.Pipelined(T.ceildiv(tokens, 2 * cores), num_stages=2):
                    one = i * 2 * cores + worker
                    if one < tokens:
                        T.tile.fill(total, 0.0)
                        for c in T.serial(chosen):
                            pair = one * chosen + c
                            T.copy(Y[place[pair, 0], place[pair, 1], 0], part[c, :, :])
                        for c in T.serial(chosen):
                            T.copy(part[c, :, :], wide)
                            T.tile.mul(wide, wide, weight[one * chosen + c])
                            T.tile.add(total, total, wide)
                        T.copy(total, out)
                        T.copy(out, O[one, 0])
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
                T.sync_all("Mix")

    return dispatch_multiply_combine


def moe_dispatch_combine(rank, ranks, tokens, capacity, chosen, K):
    names = ("X", "W", "start", "token", "G", "N", "F", "P", "Y", "E", "place", "weight", "O")
    return [(dispatch_multiply_combine(rank, ranks, tokens, capacity, chosen, K), names)]


if __name__ == "__main__":
    check(moe_dispatch_combine)
