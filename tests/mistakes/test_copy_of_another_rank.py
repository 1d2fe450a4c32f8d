"""A row of a matrix, of other extents than its destination."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((8, 64), "float32")
            y = T.alloc_ub((32,), "float32")
            T.tile.fill(x, 1.0)
            T.copy(x[0, :], y)  # mistake

    return main


def test_copy_of_another_rank(refused):
    with refused("T131", at="T.copy", message="different shapes|has", help="."):
        factory().mlir()
