"""Right: a vector kernel with the destination first."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="ascendc")
def scaled_sum(rows, columns, tile=8):
    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), "float32"),
        B: T.Tensor((rows, columns), "float32"),
        C: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(T.ceildiv(rows, tile), is_npu=True) as (cid, vid):
            half = tile // 2
            row = cid * tile + vid * half
            a = T.alloc_ub((half, columns), "float32")
            b = T.alloc_ub((half, columns), "float32")
            top = T.alloc_ub((half, 1), "float32")
            T.copy(A[row : row + half, :], a)
            T.copy(B[row, 0], b)
            T.tile.add(a, a, b)
            T.tile.mul(a, a, 0.5)
            T.reduce_max(a, top, dim=-1)
            T.tile.exp(a, a)
            T.tile.clamp(a, a, min_scalar=0.0, max_scalar=6.0)
            T.copy(a, C[row, 0])

    return main


kernel = scaled_sum(16, 64)
result = kernel(np.zeros((16, 64), np.float32), np.zeros((16, 64), np.float32))
print(kernel.mlir("hivm-auto"), kernel.explain(), result.shape)
