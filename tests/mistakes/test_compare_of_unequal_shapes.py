"""A comparison whose second operand is shorter than the first."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((256,), "float32")
            y = T.alloc_ub((128,), "float32")
            b = T.alloc_ub((32,), "uint8")
            T.tile.fill(x, 1.0)
            T.tile.fill(y, 1.0)
            T.tile.compare(b, x, y, "EQ")  # mistake

    return main


def test_compare_of_unequal_shapes(refused):
    with refused("T111", at="T.tile.compare", message="128", help="."):
        factory().mlir()
