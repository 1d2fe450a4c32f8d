"""A load into L1 that is to convert."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(H: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((64, 64), "float32")
            T.copy(H, a)  # mistake

    return main


def test_cast_on_the_way_to_l1(refused):
    with refused("T232", at="T.copy", message="GM to L1 cannot convert float16 to float32", help="convert in UB"):
        factory().mlir()
