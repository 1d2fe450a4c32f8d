"""Blocking

A kernel of the Vector cores copies the rows for this card's expert from all cards: neighbouring cores read from different
cards, so that all links are busy. A second kernel multiplies them by the weights.
"""

from problem import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def dispatch(rank, ranks, capacity, K, rows=16, cores=48):
    M = ranks * capacity
    parts = M // rows

    @T.prim_func
    def dispatch(X: T.Tensor((M, K), "float16"), G: T.Tensor((M, K), "float16")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            tile = T.alloc_shared((rows, K), "float16")
            for i in T.serial(T.ceildiv(parts, cores)):
                part = i * cores + core
                if part < parts:
                    card = part % ranks
                    row = part // ranks * rows
                    T.shmem_ub_get_nbi(tile, X[rank * capacity + row, 0], rows * K, card)
                    T.copy(tile, G[card * capacity + row, 0])

    return dispatch


@tilelang.jit(target="npuir")
def gemm(M, N, K, tile_M=128, tile_N=256, tile_K=128, cores=24):
    columns = N // tile_N
    tiles = M // tile_M * columns

    @T.prim_func
    def gemm(
        G: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")
            for i in T.serial(T.ceildiv(tiles, cores)):
                tile = i * cores + core
                if tile < tiles:
                    row = tile // columns * tile_M
                    column = tile % columns * tile_N
                    for k in T.Pipelined(K // tile_K, num_stages=2):
                        T.copy(G[row, k * tile_K], a)
                        T.copy(B[k * tile_K, column], b)
                        T.gemm(a, b, c, initC=(k == 0))
                    T.copy(c, C[row, column])

    return gemm


def dispatch_gemm(rank, ranks, capacity, N, K):
    return [(dispatch(rank, ranks, capacity, K), "XG"), (gemm(ranks * capacity, N, K), "GBC")]


if __name__ == "__main__":
    check(dispatch_gemm)
