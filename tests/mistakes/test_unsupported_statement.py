"""A statement that no device could run."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_a_try_in_a_kernel(refused):
    @tilelang.jit(target="npuir")
    def factory(M):
        @T.prim_func
        def main(A: T.Tensor((M,), "float16"), B: T.Tensor((M,), "float16")):
            with T.Kernel(1, is_npu=True) as (block, _):
                a = T.alloc_shared((M,), "float16")
                try:  # mistake
                    T.copy(A, a)
                except ValueError:
                    T.copy(a, B)

        return main

    with refused("T141", at="try", message="try", help="."):
        factory(128)
