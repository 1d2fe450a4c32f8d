"""A transcendental function of integers."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "int32")
            T.tile.fill(x, 1)
            T.tile.exp(x, x)  # mistake

    return main


def test_sine_of_integers(refused):
    with refused("T110", at="T.tile.exp", message="exp does not work on int32", help="cast"):
        factory().mlir()
