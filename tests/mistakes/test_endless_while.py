"""A while loop whose condition nothing in it changes."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            n = T.alloc_var("int32", init=0)
            while n < 5:  # mistake
                T.tile.add(x, x, 1.0)
            T.copy(x, B)

    return main


def test_endless_while(refused):
    with refused("S305", at="while", message="AIV0 never leaves this loop: an iteration changes nothing",
                 help="change a value in the loop that its condition reads"):
        factory()(np.zeros(64, np.float32), np.zeros(64, np.float32))
