"""An element type that is misspelt."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "flaot32")  # mistake
            T.tile.fill(x, 1.0)

    return main


def test_misspelt_type(refused):
    with refused("T110", at="T.alloc_ub", message="flaot32", help="."):
        factory().mlir()
