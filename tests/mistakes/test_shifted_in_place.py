"""An operation from part of a buffer to an overlapping part of it."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            T.tile.add(x[8:64], x[0:56], x[0:56])  # mistake
            T.copy(x, B)

    return main


def test_shifted_in_place(refused):
    with refused("T112", at="T.tile.add", message="shares elements with the destination", help="another buffer"):
        factory().mlir()
