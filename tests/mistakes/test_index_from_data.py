"""An index that comes from data, and is outside of the buffer in this run."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "int32")
            T.copy(A, x)
            x[x[0]] = 1  # mistake
            T.copy(x, B)

    return main


def test_index_from_data(refused):
    with refused("T502", at="x", message="has 256 in block 0|valid are 0 to 63", help="check the"):
        factory()(np.full(64, 64, np.int32), np.zeros(64, np.int32))
