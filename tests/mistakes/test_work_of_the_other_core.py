"""Vector work in the scope of the Cube core."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc")
def factory():
    @T.prim_func
    def main(H: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            x = T.alloc_ub((64, 64), "float32")
            with T.Scope("C"):
                T.copy(H, a)
                T.gemm_v0(a, a, c, init=True)
                T.tile.fill(x, 1.0)  # mistake
                T.copy(c, C)

    return main


def test_work_of_the_other_core(refused):
    with refused("T247", at="T.tile.fill", message="belongs to the Vector core, but is in a T.Scope of the other",
                 help="T.Scope"):
        factory().mlir()
