"""A name that nothing defines."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_a_name_that_nothing_defines(refused):
    @tilelang.jit(target="npuir")
    def factory(M):
        @T.prim_func
        def main(A: T.Tensor((M,), "float16")):
            with T.Kernel(1, is_npu=True) as (block, _):
                tile = T.alloc_shared((M,), "float16")
                T.copy(A, tiel)  # mistake

        return main

    with refused("T140", at="tiel", message="tiel", help="did you mean .*tile"):
        factory(128)
