"""Right: a function that holds its kernel itself. Its parameters are annotated in its body."""
# pyright: reportRedeclaration=false

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def doubled(A, tile: int = 64):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, tile), is_npu=True) as (block, _):
        a = T.alloc_ub((1, tile), "float32")
        for row in T.serial(M):
            T.copy(A[row, block * tile], a)
            T.vmul(a, 2.0, a)
            T.copy(a, C[row, block * tile])
    return C


print(doubled(np.ones((4, 64), np.float32)) + 1)
