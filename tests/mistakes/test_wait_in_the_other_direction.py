"""The wait names the two pipes in the opposite order to the set."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc")
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            T.set_flag("mte2", "v", 0)
            T.wait_flag("v", "mte2", 0)  # mistake
            T.copy(x, B)

    return main


def test_wait_in_the_other_direction(refused):
    with refused("S302", at="T.wait_flag", message="MTE2 of AIV0 waits for EVENT_ID0 from V to MTE2, which nothing sets",
                 help="with the same pipes"):
        factory()(np.zeros(64, np.float32), np.zeros(64, np.float32))
