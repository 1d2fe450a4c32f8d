"""Vector work outside of every T.Scope, in a kernel of both cores."""

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
                T.copy(c, C)
            T.tile.fill(x, 1.0)  # mistake

    return main


def test_work_in_no_scope(refused):
    with refused("T248", at="T.tile.fill", message="is in no T.Scope", help="T.Scope"):
        factory().mlir()
