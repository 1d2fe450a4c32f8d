"""A name that was bound in a loop, used after it."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            for k in T.serial(4):
                last = k * 2
            x[last] = 0.0  # mistake
            T.copy(x, B)

    return main


def test_name_that_left_its_loop(refused):
    with refused("T142", at="last", message="out of scope", help="."):
        factory().mlir()
