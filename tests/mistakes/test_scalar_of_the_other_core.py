"""The number of products is read from a tile of which each of the two Vector cores has its own copy."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True, "tl.ascend_auto_cv_combine": True,
                                                "tl.ascend_auto_cross_core_sync": True})
def factory():
    @T.prim_func
    def main(H: T.Tensor((64, 64), "float16"), N: T.Tensor((2, 32), "int32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            x = T.alloc_ub((1, 32), "int32")
            T.copy(N[vid, 0], x)
            for k in T.serial(x[0, 0]):  # mistake
                T.copy(H, a)
                T.gemm_v0(a, a, c, init=(k == 0))
            T.copy(c, C)

    return main


def test_scalar_of_the_other_core(refused):
    with refused("T245", at="for", message="an operation of the Cube core depends on a scalar that only the Vector core has",
                 help="both Vector cores"):
        factory().mlir()
