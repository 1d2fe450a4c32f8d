"""A rounding mode that does not exist."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            y = T.alloc_ub((64,), "int32")
            T.tile.cast(y, x, "CAST_NEAREST", 64)  # mistake
            T.copy(x, B)

    return main


def test_unknown_rounding(refused):
    with refused("T145", at="T.tile.cast", message="there is no rounding mode", help="the rounding modes are rint"):
        factory().mlir()
