"""A name that the language does not have."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_a_name_that_the_language_does_not_have(refused):
    @tilelang.jit(target="npuir")
    def factory(M):
        @T.prim_func
        def main(A: T.Tensor((M,), "float16"), B: T.Tensor((M,), "float16")):
            with T.Kernel(1, is_npu=True) as (block, _):
                a = T.alloc_shared((M,), "float16")
                T.cpoy(A, a)  # mistake
                T.copy(a, B)

        return main

    with refused("T140", at="T.cpoy", message="cpoy", help=r"did you mean .*T\.copy"):
        factory(128)
