"""Blocks for the worst case

There is a block for each tile that an expert could have if all rows belonged to it. A block after the last row of its
expert only reads two offsets; of 4096 blocks, 3500 do no more, but each has to start.
"""

from ladder import check

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def ragged_gemm(rows, groups, N, K, tile_M=128, tile_N=128, tile_K=64):
    columns = T.ceildiv(N, tile_N)
    row_tiles = T.ceildiv(rows, tile_M)  # the most that one expert can have

    @T.prim_func
    def ragged_gemm(
        A: T.Tensor((rows, K), "float16"),
        B: T.Tensor((groups, K, N), "float16"),
        Offsets: T.Tensor((groups + 1,), "int32"),
        C: T.Tensor((rows, N), "float16"),
    ):
        with T.Kernel(groups * row_tiles * columns, is_npu=True) as (block, _):
            a = T.alloc_shared((tile_M, tile_K), "float16")
            b = T.alloc_shared((tile_K, tile_N), "float16")
            c = T.alloc_fragment((tile_M, tile_N), "float32")
            group = block // (row_tiles * columns)
            column = block % columns * tile_N
            row = Offsets[group] + block // columns % row_tiles * tile_M
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
