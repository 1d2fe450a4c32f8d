"""A shift of floating-point elements."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            T.tile.bitwise_lshift(x, x, 1)  # mistake
            T.copy(x, B)

    return main


def test_shift_of_floats(refused):
    with refused("T110", at="T.tile.bitwise_lshift", message="does not work on float32", help="cast"):
        factory().mlir()
