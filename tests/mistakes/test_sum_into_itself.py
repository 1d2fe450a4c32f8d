"""A reduction whose destination is its source."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((8, 64), "float32")
            T.tile.fill(x, 1.0)
            T.reduce_sum(x, x[0:8, 0:1], dim=-1)  # mistake

    return main


def test_sum_into_itself(refused):
    with refused("T112", at="T.reduce_sum", message="shares elements", help="."):
        factory().mlir()
