"""A tile of a negative size."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_negative_size(refused):
    @tilelang.jit(target="ascendc")
    def factory(M, N):
        @T.prim_func
        def main(A: T.Tensor((M, 64), "float32")):
            with T.Kernel(1, is_npu=True) as (block, half):
                a = T.alloc_ub((M // N - 1, 64), "float32")  # mistake
                T.copy(A[0, 0], a)

        return main

    with refused("T150", at="T.alloc_ub", message="-1", help="."):
        factory(32, 64)
