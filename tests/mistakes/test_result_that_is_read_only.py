"""A result in memory that cannot be written."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"),
             B: T.Tensor((64,), "float32")):  # mistake
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            T.copy(x, B)

    return main


def test_result_that_is_read_only(refused):
    with refused("T404", at="B", message="the kernel writes B, and the array is read-only", help="pass a copy"):
        factory()(np.zeros(64, np.float32), np.frombuffer(bytes(256), np.float32))
