"""A wait for an event that nothing sets."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1], target="ascendc")
def factory(M):
    @T.prim_func
    def main(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(1, is_npu=True) as (block, half):
            a = T.alloc_ub((M,), "float32")
            with T.Scope("V"):
                T.copy(A, a)
                T.set_flag("mte2", "mte3", 0)
                T.wait_flag("mte2", "mte3", 0)
                T.wait_flag("mte2", "mte3", 1)  # mistake
                T.copy(a, B)

    return main


def test_wait_without_set(refused):
    with refused("S302", at="T.wait_flag", message="MTE3 of AIV0 waits for EVENT_ID1 from MTE2 to MTE3, which nothing sets",
                 help="give each wait a set"):
        factory(64)(np.zeros(64, np.float32))
