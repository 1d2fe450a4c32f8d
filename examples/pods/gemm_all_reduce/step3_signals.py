"""Signals

After each addition a card signals the owner of the tile. The owner waits until all cards have, and puts the sum to all of them,
while the Cube cores multiply the tiles of the next turn: each Vector core half a tile to one card, so that all links are busy.
There is one kernel, and no barrier of the cards. Rows of 256 elements along K are whole lines of L2.
"""

from problem import TILE_M, TILE_N, check

import tilelang_npu as tilelang
import tilelang_npu.language as T

KEY = tilelang.PassConfigKey
CONFIGS = {KEY.TL_ASCEND_AUTO_CV_SYNC: False, KEY.TL_ASCEND_AUTO_SYNC: True, KEY.TL_ASCEND_MEMORY_PLANNING: True}


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def multiply_and_reduce(rank, ranks, M, N, K, tile_K=256, cores=24):
    columns = N // TILE_N
    tiles = M // TILE_M * columns
    half = TILE_M // 2  # the rows of each of the two Vector cores

    @T.prim_func
    def multiply_and_reduce(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        W: T.Tensor((48, TILE_M, TILE_N), "float32"),
        S: T.Tensor((tiles, TILE_M, TILE_N), "float32"),
        C: T.Tensor((tiles, TILE_M, TILE_N), "float32"),
        F: T.Tensor((tiles,), "int32"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, vid):
            with T.Scope("C"):
                a = T.alloc_L1((TILE_M, tile_K), "float16")
                b = T.alloc_L1((tile_K, TILE_N), "float16")
                c = T.alloc_L0C((TILE_M, TILE_N), "float32")
                for i in T.serial(T.ceildiv(tiles, cores)):
                    tile = i * cores + core
                    if tile < tiles:
                        row = tile // columns * TILE_M
                        column = tile % columns * TILE_N
                        for k in T.Pipelined(K // tile_K, num_stages=2):
                            T.copy(A[row, k * tile_K], a)
                            T.copy(B[k * tile_K, column], b)
                            T.gemm_v0(a, b, c, init=(k == 0))
                        if i > 1:
                            T.wait_cross_flag(2 + i % 2)  # the Vector cores have read this slot of the workspace
                        T.copy(c, W[core * 2 + i % 2, 0, 0])
                        T.set_cross_flag("FIX", i % 2)
            with T.Scope("V"):
                part = T.alloc_ub((half, TILE_N), "float32")
                total = T.alloc_ub((half, TILE_N), "float32")
                for i in T.serial(T.ceildiv(tiles, cores) + 1):
                    tile = i * cores + core
                    # of a tile of the last turn, each Vector core puts one half to one card
                    last = (i - 1) * cores + (core * 2 + vid) // (2 * ranks) * ranks + rank
                    if i > 0 and last < tiles:
                        T.shmem_signal_wait_until(F, last, 0, 2 * ranks)  # from both Vector cores of each card
                    if tile < tiles:
                        T.wait_cross_flag(i % 2)
                        T.copy(W[core * 2 + i % 2, vid * half, 0], part)
                        if tile + 2 * cores < tiles:
                            T.set_cross_flag("MTE2", 2 + i % 2)
                        T.shmem_ub_atomic_add_nbi(part, S[tile, vid * half, 0], half * TILE_N, tile % ranks)
                    if i > 0 and last < tiles:
                        T.copy(S[last, vid * half, 0], total)
                        card = (core * 2 + vid) % (2 * ranks) // 2
                        T.shmem_ub_put_nbi(total, C[last, vid * half, 0], half * TILE_N, card)
                    if tile < tiles:
                        T.shmem_quiet()
                        T.shmem_signal_op(F, tile, 1, 1, tile % ranks)

    return multiply_and_reduce


def gemm_all_reduce(rank, ranks, M, N, K):
    return [(multiply_and_reduce(rank, ranks, M, N, K), "ABWSCF")]


if __name__ == "__main__":
    check(gemm_all_reduce)
