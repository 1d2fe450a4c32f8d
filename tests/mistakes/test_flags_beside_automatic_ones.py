"""An explicit flag in a kernel for which the compiler sets the flags between the cores."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True, "tl.ascend_auto_cv_combine": True,
                                                "tl.ascend_auto_cross_core_sync": True})
def factory():
    @T.prim_func
    def main(H: T.Tensor((64, 64), "float16"), S: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            l1 = T.alloc_L1((64, 64), "float16")
            x = T.alloc_ub((32, 64), "float32")
            with T.Scope("C"):
                T.copy(H, l1)
                T.set_cross_flag("MTE2", 0)  # mistake
            with T.Scope("V"):
                T.wait_cross_flag(0)
                T.copy(S[vid * 32, 0], x)
                T.copy(x, S[vid * 32, 0])

    return main


def test_flags_beside_automatic_ones(refused):
    with refused("T246", at="T.set_cross_flag", message="conflicts with the flags", help="switch TL_ASCEND_AUTO_CV_SYNC off"):
        factory().mlir()
