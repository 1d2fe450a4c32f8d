"""A copy from one global tensor to another."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_gm_to_gm(refused):
    @tilelang.jit(target="ascendc")
    def factory(M):
        @T.prim_func
        def main(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
            with T.Kernel(1, is_npu=True) as (block, half):
                T.copy(A, B)  # mistake

        return main

    with refused("T132", at="T.copy", message="global A to global B", help="T.alloc_ub"):
        factory(64)
