"""Cube and Vector loops around a hand-over run a different number of times."""

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
                for _ in T.serial(2):
                    T.set_cross_flag("MTE2", 0)
            with T.Scope("V"):
                for _ in T.serial(4):
                    T.wait_cross_flag(0)  # mistake
                    T.copy(S[vid * 32, 0], x)

    return main


def test_loop_counts(refused):
    with refused("S302", at="T.wait_cross_flag", message="S of AIV0 waits for flag 0, which is set twice; this is wait 3",
                 help="equally often"):
        factory()(np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float32))
