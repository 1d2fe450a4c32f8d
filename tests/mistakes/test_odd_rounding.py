"""A rounding mode that the conversion does not have."""

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
            T.tile.cast(y, x, "CAST_ODD", 64)  # mistake
            T.copy(x, B)

    return main


def test_odd_rounding(refused):
    with refused("T234", at="T.tile.cast", message="no conversion from float32 to int32 with the rounding mode odd",
                 help="use one of the rounding modes rint"):
        factory().mlir()
