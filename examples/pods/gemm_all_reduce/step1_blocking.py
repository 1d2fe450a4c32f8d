"""Blocking

A kernel multiplies. After a barrier, each card reads the parts of its tiles from all cards and adds them (reduce-scatter).
After another barrier, each card reads the sums of all tiles from the cards that have them (all-gather).
"""

from problem import TILE_M, TILE_N, check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def gemm(M, N, K, tile_K=128, cores=24):
    columns = N // TILE_N
    tiles = M // TILE_M * columns

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        P: T.Tensor((tiles, TILE_M, TILE_N), "float32"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((TILE_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, TILE_N), "float16")
            c = T.alloc_fragment((TILE_M, TILE_N), "float32")
            for i in T.serial(T.ceildiv(tiles, cores)):
                tile = i * cores + core
                if tile < tiles:
                    row = tile // columns * TILE_M
                    column = tile % columns * TILE_N
                    for k in T.Pipelined(K // tile_K, num_stages=2):
                        T.copy(A[row, k * tile_K], a)
                        T.copy(B[k * tile_K, column], b)
                        T.gemm(a, b, c, initC=(k == 0))
                    T.copy(c, P[tile, 0, 0])

    return gemm


@tilelang.jit(target="npuir")
def reduce_scatter(rank, ranks, tiles, rows=32, cores=48):
    strips = TILE_M // rows  # the cores divide a tile
    parts = tiles // ranks * strips

    @T.prim_func
    def reduce_scatter(
        P: T.Tensor((tiles, TILE_M, TILE_N), "float32"),
        S: T.Tensor((tiles, TILE_M, TILE_N), "float32"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            total = T.alloc_shared((rows, TILE_N), "float32")
            part = T.alloc_shared((rows, TILE_N), "float32")
            for i in T.serial(T.ceildiv(parts, cores)):
                number = i * cores + core
                if number < parts:
                    tile = number // strips * ranks + rank
                    row = number % strips * rows
                    T.clear(total)
                    for other in T.serial(ranks):
                        T.shmem_ub_get_nbi(part, P[tile, row, 0], rows * TILE_N, (core + other) % ranks)
                        T.vadd(total, part, total)
                    T.copy(total, S[tile, row, 0])

    return reduce_scatter


@tilelang.jit(target="npuir")
def all_gather(ranks, tiles, rows=64, cores=48):
    strips = TILE_M // rows
    parts = tiles * strips

    @T.prim_func
    def all_gather(
        S: T.Tensor((tiles, TILE_M, TILE_N), "float32"),
        C: T.Tensor((tiles, TILE_M, TILE_N), "float32"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            part = T.alloc_shared((rows, TILE_N), "float32")
            for i in T.serial(T.ceildiv(parts, cores)):
                number = i * cores + core
                if number < parts:
                    tile = number // strips
                    row = number % strips * rows
                    T.shmem_ub_get_nbi(part, S[tile, row, 0], rows * TILE_N, tile % ranks)
                    T.copy(part, C[tile, row, 0])

    return all_gather


def gemm_all_reduce(rank, ranks, M, N, K):
    tiles = M // TILE_M * (N // TILE_N)
    return [(gemm(M, N, K), "ABP"), (reduce_scatter(rank, ranks, tiles), "PS"), (all_gather(ranks, tiles), "SC")]


if __name__ == "__main__":
    check(gemm_all_reduce)
