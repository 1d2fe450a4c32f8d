"""Overlapped

One kernel, in which the Vector cores get the next rows while the Cube cores multiply the last ones: half of the rows of each
card at a time. All cores meet after each half.
"""

from problem import check

import tilelang_npu as tilelang
import tilelang_npu.language as T

KEY = tilelang.PassConfigKey
CONFIGS = {KEY.TL_ASCEND_AUTO_CV_SYNC: False, KEY.TL_ASCEND_AUTO_SYNC: True, KEY.TL_ASCEND_MEMORY_PLANNING: True}


@tilelang.jit(target="ascendc", pass_configs=CONFIGS)
def dispatch_and_multiply(rank, ranks, capacity, N, K, chunks=2, rows=8, tile_M=128, tile_N=256, tile_K=128, cores=24):
    M = ranks * capacity
    piece = capacity // chunks  # the rows of each card in a chunk
    parts = piece // rows * ranks
    columns = N // tile_N
    strips = piece // tile_M
    tiles = strips * ranks * columns

    @T.prim_func
    def dispatch_and_multiply(
        X: T.Tensor((M, K), "float16"),
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
                            T.shmem_ub_get_nbi(strip, X[rank * capacity + row, 0], rows * K, card)
                            T.copy(strip, G[card * capacity + row, 0])
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
                            row = line // strips * capacity + chunk * piece + line % strips * tile_M
                            column = tile % columns * tile_N
                            for k in T.Pipelined(K // tile_K, num_stages=2):
                                T.copy(G[row, k * tile_K], a)
                                T.copy(B[k * tile_K, column], b)
                                T.gemm_v0(a, b, c, init=(k == 0))
                            T.copy(c, C[row, column])

    return dispatch_and_multiply


def dispatch_gemm(rank, ranks, capacity, N, K):
    return [(dispatch_and_multiply(rank, ranks, capacity, N, K), "XGBC")]


if __name__ == "__main__":
    check(dispatch_gemm)
