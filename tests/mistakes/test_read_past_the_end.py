"""A constant index past the end of a tensor."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_constant_index_past_the_end(refused):
    @tilelang.jit(target="ascendc")
    def factory(M):
        @T.prim_func
        def main(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32")):
            with T.Kernel(1, is_npu=True) as (block, half):
                a = T.alloc_ub((1, 64), "float32")
                T.copy(A[M, 0], a)  # mistake
                T.barrier_all()
                T.copy(a, B[0, 0])

        return main

    with refused("T130", at="A[M, 0]", message=r"128", help="."):
        factory(128)
