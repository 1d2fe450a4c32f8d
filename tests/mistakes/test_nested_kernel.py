"""A T.Kernel inside of another one."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            with T.Kernel(2, is_npu=True) as (a, b):  # mistake
                T.copy(A, x)

    return main


def test_nested_kernel(refused):
    with refused("T150", at="T.Kernel", message="T.Kernel inside another", help="end the first `with`"):
        factory().mlir()
