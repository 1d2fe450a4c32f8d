"""A call with one argument too many: a call may pass the output at its position, but nothing after it."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="ascendc")
def factory(M):
    @T.prim_func
    def main(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(1, is_npu=True) as (block, half):
            a = T.alloc_ub((M,), "float32")
            T.copy(A, a)
            T.barrier_all()
            T.copy(a, B)

    return main


def test_more_than_the_outputs_passed(refused):
    kernel = factory(64)
    a = np.zeros(64, np.float32)
    with refused("T401", at="kernel(a, a, a)", message=r"1 argument \(A\) and got 3", help="call it with A"):
        kernel(a, a, a)  # mistake
