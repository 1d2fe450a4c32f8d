"""A switch that does nothing on its own."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_cross_core_flags_without_a_split(refused):
    @tilelang.jit(
        target="ascendc",
        pass_configs={
            tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
            tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: False,
            tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,  # mistake
        },
    )
    def factory(M):
        @T.prim_func
        def main(A: T.Tensor((M,), "float16")):
            with T.Kernel(1, is_npu=True) as (block, half):
                a = T.alloc_ub((M,), "float16")
                T.copy(A, a)

        return main

    with refused("T720", at="TL_ASCEND_AUTO_CV_SYNC", message="no effect without",
                 help="remove TL_ASCEND_AUTO_CV_COMBINE: False"):
        factory(64)
