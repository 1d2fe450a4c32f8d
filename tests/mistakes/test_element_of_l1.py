"""A single element of a buffer in L1."""

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
            a[0, 0] = 1.0  # mistake
            T.gemm_v0(a, a, c, init=True)
            T.copy(c, C)

    return main


def test_element_of_l1(refused):
    with refused("T201", at="a", message=r"a \[64, 64\] float16 is in L1, but this use needs it in UB",
                 help="copy it into a buffer in UB"):
        factory().mlir()
