"""An accumulator that is to start from something else than zero."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(H: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            T.copy(H, a)
            T.tile.fill(c, 1.0)  # mistake
            T.gemm_v0(a, a, c, init=False)
            T.copy(c, C)

    return main


def test_accumulator_from_one(refused):
    with refused("T210", at="T.tile.fill", message="c is in L0C, which can only be cleared to zero", help="T.clear"):
        factory().mlir()
