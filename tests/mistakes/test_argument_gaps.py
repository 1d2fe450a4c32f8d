"""A transposed view where rows without gaps are expected."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="ascendc")
def factory(M):
    @T.prim_func
    def main(
        A: T.Tensor((M, M), "float16"),  # mistake
        B: T.Tensor((M, M), "float16"),
    ):
        with T.Kernel(1, is_npu=True) as (block, half):
            a = T.alloc_ub((M, M), "float16")
            T.copy(A, a)
            T.barrier_all()
            T.copy(a, B)

    return main


def test_transposed_view_passed(refused):
    with refused("T404", at="A", message=r"A has gaps.*strides \[1, 32\]", help=r"numpy\.ascontiguousarray\(A\)"):
        factory(32)(np.zeros((32, 32), np.float16).T)
