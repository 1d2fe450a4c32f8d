"""An address that does not start at a block of 32 bytes."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.annotate_address({x: 40})  # mistake
            T.copy(A, x)
            T.copy(x, B)

    return main


def test_misaligned_address(refused):
    with refused("T162", at="T.annotate_address", message="not a multiple of 32 bytes", help="use 32 or 64"):
        factory().mlir()
