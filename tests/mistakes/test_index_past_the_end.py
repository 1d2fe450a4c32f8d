"""A constant index one past the last element."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            x[64] = 1.0  # mistake
            T.copy(x, B)

    return main


def test_index_past_the_end(refused):
    with refused("T130", at="x[64]", message="index 64 is outside axis 0 .* valid are 0 to 63", help="check the sizes"):
        factory().mlir()
