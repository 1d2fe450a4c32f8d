"""An array of another shape."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="ascendc")
def factory(M, N):
    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float16"),  # mistake
        B: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(1, is_npu=True) as (block, half):
            a = T.alloc_ub((M, N), "float16")
            T.copy(A, a)
            T.barrier_all()
            T.copy(a, B)

    return main


def test_rows_and_columns_swapped(refused):
    with refused("T403", at="A", message=r"A has shape \[32, 64\]; the array has \[64, 32\]", help="."):
        factory(32, 64)(np.zeros((64, 32), np.float16))
