"""An event with a number that the hardware does not have."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            T.set_flag("mte2", "v", 16)  # mistake
            T.copy(x, B)

    return main


def test_event_out_of_range(refused):
    with refused("T161", at="T.set_flag", message="there is no event 16", help="% 8"):
        factory().mlir()
