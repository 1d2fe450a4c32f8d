"""Longer pieces along K

Pipe MTE2 of the Cube cores now bounds the kernel. A row of a tile of A with 128 elements of K is 256 bytes, half a line of L2.
With 256 elements of K the rows are whole lines, and half as many pieces are loaded.
"""

from problem import TILE_M, TILE_N, check

import tilelang_npu as tilelang
import tilelang_npu.language as T

KEY = tilelang.PassConfigKey
CONFIGS = {KEY.TL_ASCEND_AUTO_CV_SYNC: False, KEY.TL_ASCEND_AUTO_SYNC: True, KEY.TL_ASCEND_MEMORY_PLANNING: True}


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def multiply_and_add(ranks, M, N, K, tile_K=256, cores=24):
    columns = N // TILE_N
    tiles = M // TILE_M * columns
    half = TILE_M // 2  # the rows of each of the two Vector cores

    @T.prim_func
    def multiply_and_add(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        W: T.Tensor((48, TILE_M, TILE_N), "float32"),
        S: T.Tensor((tiles, TILE_M, TILE_N), "float32"),
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
                for i in T.serial(T.ceildiv(tiles, cores)):
                    tile = i * cores + core
                    if tile < tiles:
                        T.wait_cross_flag(i % 2)
                        T.copy(W[core * 2 + i % 2, vid * half, 0], part)
                        if tile + 2 * cores < tiles:
                            T.set_cross_flag("MTE2", 2 + i % 2)
                        T.shmem_ub_atomic_add_nbi(part, S[tile, vid * half, 0], half * TILE_N, tile % ranks)

    return multiply_and_add


def gemm_reduce_scatter(rank, ranks, M, N, K):
    return [(multiply_and_add(ranks, M, N, K), "ABWS")]


if __name__ == "__main__":
    check(gemm_reduce_scatter)
