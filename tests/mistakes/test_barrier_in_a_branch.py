"""A barrier of all cores that only some of the blocks reach."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(3, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            if cid < 2:
                T.sync_all()  # mistake

    return main


def test_barrier_in_a_branch(refused):
    with refused("S303", at="T.sync_all", message="waits at a barrier that AIV0 of block 4 and AIV0 of block 5 never reach",
                 help="on every path"):
        factory()(np.zeros(64, np.float32), np.zeros(64, np.float32))
