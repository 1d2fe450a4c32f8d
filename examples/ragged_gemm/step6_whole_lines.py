"""Full 512-byte lines along K

A load reads 512 bytes along K, a full line of L2.

Removes cause: small bursts
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def ragged_gemm(rows, groups, N, K, tile_M=128, tile_N=256, tile_K=256, cores=24):
    columns = T.ceildiv(N, tile_N)
    row_tiles = T.ceildiv(rows, tile_M) + groups - 1  # an upper bound

    @T.prim_func
    def ragged_gemm(
        A: T.Tensor((rows, K), "float16"),
        B: T.Tensor((groups, K, N), "float16"),
        Offsets: T.Tensor((groups + 1,), "int32"),
        C: T.Tensor((rows, N), "float16"),
    ):
        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")
            group = T.alloc_var("int32", init=0)
            first = T.alloc_var("int32", init=0)  # number of row tiles of the previous experts
            seen = T.alloc_var("int32", init=0)
            for i in T.serial(T.ceildiv(row_tiles * columns - core, cores)):
                tile = i * cores + core
                group = 0
                first = 0
                seen = 0
                for g in T.serial(groups):
                    if seen <= tile // columns:
                        group = g
                        first = seen
                    seen = seen + T.ceildiv(Offsets[g + 1] - Offsets[g], tile_M)
                column = tile % columns * tile_N
                row = Offsets[group] + (tile // columns - first) * tile_M
                count = T.min(Offsets[group + 1] - row, tile_M)
                if count > 0:
                    for k in T.Pipelined(T.ceildiv(K, tile_K), num_stages=2):
                        T.copy(A[row, k * tile_K], a)
                        T.copy(B[group, k * tile_K, column], b)
                        T.gemm(a, b, c, initC=(k == 0))
                    T.copy(c[:count, :], C[row : row + count, column : column + tile_N])

    return ragged_gemm


if __name__ == "__main__":
    check(ragged_gemm)
