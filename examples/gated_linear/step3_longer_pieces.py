"""Longer pieces along K

A load reads 256 bytes of each row in place of 128: half as many requests, each twice as long.

Removes cause: small bursts
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def gated_linear(M, N, K, tile_M=128, tile_N=128, tile_K=128, cores=24):
    columns = T.ceildiv(N, tile_N)
    tiles = T.ceildiv(M, tile_M) * columns

    @T.prim_func
    def gated_linear(
        A: T.Tensor((M, K), "float16"),
        Gate: T.Tensor((N, K), "float16"),
        Up: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            g = T.alloc_shared((tile_N, tile_K), "float16")
            u = T.alloc_shared((tile_N, tile_K), "float16")
            gate = T.alloc_fragment((tile_M, tile_N), "float32")
            up = T.alloc_fragment((tile_M, tile_N), "float32")
            out = T.alloc_shared((tile_M, tile_N), "float16")
            for i in T.Pipelined(T.ceildiv(tiles - core, cores), num_stages=2):
                row = (i * cores + core) // columns * tile_M
                column = (i * cores + core) % columns * tile_N
                for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=2):
                    T.copy(A[row, k * tile_K], a)
                    T.copy(Gate[column, k * tile_K], g)
                    T.copy(Up[column, k * tile_K], u)
                    T.gemm(a, g, gate, initC=(k == 0), b_transpose=True)
                    T.gemm(a, u, up, initC=(k == 0), b_transpose=True)
                for r, n in T.Parallel(tile_M, tile_N):
                    out[r, n] = gate[r, n] / (1.0 + T.exp(-gate[r, n])) * up[r, n]
                T.copy(out, C[row, column])

    return gated_linear


if __name__ == "__main__":
    check(gated_linear)
