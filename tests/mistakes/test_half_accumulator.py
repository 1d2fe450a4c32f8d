"""A product that accumulates in half precision."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(H: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float16")
            T.copy(H, a)
            T.gemm_v0(a, a, c, init=True)  # mistake

    return main


def test_half_accumulator(refused):
    with refused("T121", at="T.gemm_v0", message="no product of float16 and float16 into float16", help="float16 -> float32"):
        factory().mlir()
