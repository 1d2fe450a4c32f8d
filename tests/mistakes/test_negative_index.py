"""An index that is to count from the end."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            x[-1] = 1.0  # mistake
            T.copy(x, B)

    return main


def test_negative_index(refused):
    with refused("T130", at="x[-1]", message="index -1 is outside axis 0", help="does not count from the end"):
        factory().mlir()
