"""A buffer whose size only the call knows."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((n,), "float32")  # mistake
            T.copy(A, x)

    return main


def test_tile_that_is_not_constant(refused):
    with refused("T111", at="T.alloc_ub", message="not a constant", help="."):
        factory().mlir()
