"""An array of another element type."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="ascendc")
def factory(M):
    @T.prim_func
    def main(
        A: T.Tensor((M,), "float16"),  # mistake
        B: T.Tensor((M,), "float16"),
    ):
        with T.Kernel(1, is_npu=True) as (block, half):
            a = T.alloc_ub((M,), "float16")
            T.copy(A, a)
            T.barrier_all()
            T.copy(a, B)

    return main


def test_float64_passed(refused):
    message = "A has elements of float16; the array has float64"
    with refused("T402", at="A", message=message, help=r"A\.astype\(numpy\.float16\)"):
        factory(64)(np.zeros(64))
