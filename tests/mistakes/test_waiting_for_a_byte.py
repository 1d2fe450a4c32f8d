"""A core that spins on global memory until another core writes it."""

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
            while B[0] < 1.0:  # mistake
                T.copy(A, x)
            T.copy(x, B)

    return main


def test_waiting_for_a_byte(refused):
    with refused("S305", at="while", message="AIV0 never leaves this loop",
                 help="to wait for another core or block, use a flag"):
        factory()(np.zeros(64, np.float32), np.zeros(64, np.float32))
