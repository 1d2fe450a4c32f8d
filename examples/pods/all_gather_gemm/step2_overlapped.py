"""Overlapped

One kernel, in which the Vector cores gather the second half of the rows, half of each card's, while the Cube cores multiply the
first half. All cores meet when a half has come. Two slots in UB let a transfer begin before the last one is stored. The
compiler would let the Cube core wait for the end of the Vector core's loop, so the author orders the cores
(``TL_ASCEND_AUTO_CV_SYNC``).
"""

from problem import check

import tilelang_npu as tilelang
import tilelang_npu.language as T

KEY = tilelang.PassConfigKey
CONFIGS = {KEY.TL_ASCEND_AUTO_CV_SYNC: False, KEY.TL_ASCEND_AUTO_SYNC: True, KEY.TL_ASCEND_MEMORY_PLANNING: True}


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def gather_and_multiply(ranks, M, N, K, chunks=2, rows=8, tile_M=128, tile_N=256, tile_K=128, cores=24):
    own = M // ranks
    piece = own // chunks  # the rows of each card in a chunk
    parts = piece // rows * ranks
    columns = N // tile_N
    strips = piece // tile_M
    tiles = strips * ranks * columns

    @T.prim_func
    def gather_and_multiply(
        A: T.Tensor((own, K), "float16"),
        G: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, vid):
            with T.Scope("V"):
                strip = T.alloc_ub((rows, K), "float16")
                for chunk in T.serial(chunks):
                    for i in T.Pipelined(T.ceildiv(parts, 2 * cores), num_stages=2):
                        part = (i * cores + core) * 2 + vid
                        if part < parts:
                            card = part % ranks
                            row = chunk * piece + part // ranks * rows
                            T.shmem_ub_get_nbi(strip, A[row, 0], rows * K, card)
                            T.copy(strip, G[card * own + row, 0])
                    T.sync_all("Mix")
            with T.Scope("C"):
                a = T.alloc_L1((tile_M, tile_K), "float16")
                b = T.alloc_L1((tile_K, tile_N), "float16")
                c = T.alloc_L0C((tile_M, tile_N), "float32")
                for chunk in T.serial(chunks):
                    T.sync_all("Mix")
                    for i in T.serial(T.ceildiv(tiles, cores)):
                        tile = i * cores + core
                        if tile < tiles:
                            line = tile // columns
                            row = line // strips * own + chunk * piece + line % strips * tile_M
                            column = tile % columns * tile_N
                            for k in T.Pipelined(K // tile_K, num_stages=2):
                                T.copy(G[row, k * tile_K], a)
                                T.copy(B[k * tile_K, column], b)
                                T.gemm_v0(a, b, c, init=(k == 0))
                            T.copy(c, C[row, column])

    return gather_and_multiply


def all_gather_gemm(rank, ranks, M, N, K):
    return [(gather_and_multiply(ranks, M, N, K), ("A", "G", "B", "C"))]


if __name__ == "__main__":
    check(all_gather_gemm)
