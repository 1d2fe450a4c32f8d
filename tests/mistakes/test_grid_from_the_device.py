"""A number of blocks that is computed on the device."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc")
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), N: T.Tensor((1,), "int32")):
        with T.Kernel(N[0], is_npu=True) as (cid, vid):  # mistake
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)

    return main


def test_grid_from_the_device(refused):
    with refused("T150", at="T.Kernel", message="block count .* computed on the device", help="function of sizes"):
        factory().mlir()
