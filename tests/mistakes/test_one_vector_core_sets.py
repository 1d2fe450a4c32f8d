"""The Cube core waits for both Vector cores, and one of them sets the flag."""

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
            with T.Scope("V"):
                T.copy(S[vid * 32, 0], x)
                if vid == 0:
                    T.set_cross_flag("MTE2", 1)

    return main


def test_one_vector_core_sets(refused):
    with refused("S303", at="T.wait_cross_flag", message="flag 1, which AIV1 never sets", help="let each of these cores set"):
        factory()(np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float32))
