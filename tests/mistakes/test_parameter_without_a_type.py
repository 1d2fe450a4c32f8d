"""A kernel parameter without a type."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc")
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), count):  # mistake
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)

    return main


def test_parameter_without_a_type(refused):
    with refused("T151", at="count", message="parameter 'count' has no annotation", help="T.int32"):
        factory().mlir()
