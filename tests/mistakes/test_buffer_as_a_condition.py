"""A branch on a whole buffer."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            if x:  # mistake
                T.tile.fill(x, 1.0)
            T.copy(x, B)

    return main


def test_buffer_as_a_condition(refused):
    with refused("T141", at="if x", message="is not a scalar", help="loop over its elements"):
        factory().mlir()
