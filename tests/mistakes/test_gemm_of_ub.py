"""A matrix in UB as an operand of a product."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(H: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            b = T.alloc_ub((64, 64), "float16")
            T.copy(H, a)
            T.copy(H, b)
            T.gemm_v0(a, b, c, init=True)  # mistake

    return main


def test_gemm_of_ub(refused):
    with refused("T122", at="T.gemm_v0", message=r"B b \[64, 64\] float16 is in UB", help="takes B from L1"):
        factory().mlir()
