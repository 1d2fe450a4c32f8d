"""A ternary that chooses between two buffers."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            y = T.alloc_ub((64,), "float32")
            T.tile.fill(y if cid > 0 else x, 1.0)  # mistake
            T.copy(x, B)

    return main


def test_choice_of_buffers(refused):
    with refused("T141", at="y if", message="is not a scalar", help="loop over its elements"):
        factory().mlir()
