"""Two launches

The first launch, on all Vector cores, unpacks the weights to GM, one byte each; the second is an int8 product with scales.
48 MB are written and read again for 24 MB of weights.
"""

from ladder import PACK, check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def w4a8(M, N, K, tile_N=64, rows=64, cores=24):
    half, packs = PACK // 2, K // PACK
    columns, strips = T.ceildiv(N, tile_N), T.ceildiv(N, rows)

    @T.prim_func
    def w4a8(
        A: T.Tensor((M, K), "int8"),
        B: T.Tensor((N, K // 2), "uint8"),
        ScaleA: T.Tensor((M, 1), "float32"),
        ScaleB: T.Tensor((1, N), "float32"),
        C: T.Tensor((M, N), "float16"),
    ):
        weights = T.alloc_global((N, K), "int8")
        with T.Kernel(48, is_npu=True) as (core, _):
            packed = T.alloc_shared((rows, half), "uint8")
            low = T.alloc_shared((rows, half), "int8")
            high = T.alloc_shared((rows, half), "int8")
            for i in T.Pipelined(T.ceildiv(strips * packs - core, 48), num_stages=2):
                row = (i * 48 + core) // packs * rows
                pack = (i * 48 + core) % packs
                T.copy(B[row, pack * half], packed)
                for r, j in T.Parallel(rows, half):
                    low[r, j] = T.cast(packed[r, j] & 15, "int8") - T.cast(8, "int8")
                    high[r, j] = T.cast(packed[r, j] >> 4, "int8") - T.cast(8, "int8")
                T.copy(low, weights[row, pack * PACK])
                T.copy(high, weights[row, pack * PACK + half])

        with T.Kernel(cores, is_npu=True) as (core, _):
            a = T.alloc_shared((64, PACK), "int8")
            b = T.alloc_shared((tile_N, PACK), "int8")
            total = T.alloc_fragment((64, tile_N), "int32")
            scale_a = T.alloc_shared((64, 1), "float32")
            scale_b = T.alloc_shared((1, tile_N), "float32")
            c = T.alloc_shared((64, tile_N), "float16")
            for i in T.serial(T.ceildiv(T.ceildiv(M, 64) * columns - core, cores)):
                row = (i * cores + core) // columns * 64
                column = (i * cores + core) % columns * tile_N
                for pack in T.Pipelined(packs, num_stages=2):
                    T.copy(A[row, pack * PACK], a)
                    T.copy(weights[column, pack * PACK], b)
                    T.gemm(a, b, total, initC=(pack == 0), b_transpose=True)
                T.copy(ScaleA[row, 0], scale_a)
                T.copy(ScaleB[0, column], scale_b)
                for r, n in T.Parallel(64, tile_N):
                    c[r, n] = T.cast(total[r, n], "float32") * scale_a[r, 0] * scale_b[0, n]
                T.copy(c, C[row, column])

    return w4a8


if __name__ == "__main__":
    check(w4a8)
