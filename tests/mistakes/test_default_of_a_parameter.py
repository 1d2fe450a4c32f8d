"""A kernel parameter with a default."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc")
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), n: T.int32 = 0):  # mistake
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)

    return main


def test_default_of_a_parameter(refused):
    with refused("T151", at="0", message="must not have defaults", help="."):
        factory().mlir()
