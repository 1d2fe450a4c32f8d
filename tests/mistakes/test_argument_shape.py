"""An array of another shape."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="npuir")
def factory(M, N):
    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float16"),  # mistake
        B: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(1, is_npu=True) as (block, half):
            a = T.alloc_ub((M, N), "float16")
            T.copy(A, a)
            T.copy(a, B)

    return main


def test_a_column_is_missing(refused):
    with refused("T403", at="A", message=r"A has shape \[32, 64\]; the array has \[32, 63\]",
                 help="pass an array of the declared shape"):
        factory(32, 64)(np.zeros((32, 63), np.float16))
