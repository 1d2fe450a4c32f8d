"""A copy out of UB that is to apply ReLU."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            T.copy(x, B, enable_relu=True)  # mistake

    return main


def test_relu_on_the_way_out_of_ub(refused):
    with refused("T231", at="T.copy", message="only possible from L0C, not from UB", help="T.tile.relu"):
        factory().mlir()
