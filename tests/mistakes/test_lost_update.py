"""A running offset as a Python name: the update would be lost at the end of the iteration."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            ptr = 0
            for k in T.serial(4):
                ptr += k  # mistake
            x[ptr] = 0.0
            T.copy(x, B)

    return main


def test_lost_update(refused):
    with refused("T142", at="ptr", message="its update would be lost", help=r"T\.alloc_var"):
        factory().mlir()
