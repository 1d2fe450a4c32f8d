"""Blocking

A kernel of the Vector cores copies the rows of all cards to the gathered matrix: neighbouring cores read from different cards,
so that all links are busy. A second kernel multiplies. Each of them waits for the end of the other.
"""

from problem import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def gather(ranks, M, K, rows=16, cores=48):
    own = M // ranks
    parts = M // rows

    @T.prim_func
    def gather(A: T.Tensor((own, K), "float16"), G: T.Tensor((M, K), "float16")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            tile = T.alloc_shared((rows, K), "float16")
            for i in T.serial(T.ceildiv(parts, cores)):
                part = i * cores + core
                if part < parts:
                    card = part % ranks
                    row = part // ranks * rows
                    T.shmem_ub_get_nbi(tile, A[row, 0], rows * K, card)
                    T.copy(tile, G[card * own + row, 0])

    return gather


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


def all_gather_gemm(rank, ranks, M, N, K):
    return [(gather(ranks, M, K), ("A", "G")), (gemm(M, N, K), ("G", "B", "C"))]


if __name__ == "__main__":
    check(all_gather_gemm)
