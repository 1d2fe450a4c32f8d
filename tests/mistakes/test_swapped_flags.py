"""Two cores that wait for each other: each sets its flag after its wait."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc")
def factory():
    @T.prim_func
    def main(H: T.Tensor((64, 64), "float16"), S: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            l1 = T.alloc_L1((64, 64), "float16")
            x = T.alloc_ub((32, 64), "float32")
            with T.Scope("C"):
                T.copy(H, l1)
                T.wait_cross_flag(1)  # mistake
                T.set_cross_flag("MTE2", 0)
            with T.Scope("V"):
                T.wait_cross_flag(0)
                T.copy(S[vid * 32, 0], x)
                T.set_cross_flag("MTE2", 1)

    return main


def test_swapped_flags(refused):
    with refused(
        "S301", at="T.wait_cross_flag",
        message=r"S of AIC \(line \d+\) and S of AIV0 \(line \d+\) wait for each other",
        help="before the wait",
    ):
        factory()(np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float32))
