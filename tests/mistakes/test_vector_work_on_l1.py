"""A vector operation on a buffer in L1."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(H: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            T.copy(H, a)
            T.tile.exp(a, a)  # mistake

    return main


def test_vector_work_on_l1(refused):
    with refused("T201", at="T.tile.exp", message="is in L1, and vector work needs it in UB",
                 help="copy it into a buffer in UB"):
        factory().mlir()
