"""An operation on two element types."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_types_differ(refused):
    @tilelang.jit(target="ascendc")
    def factory(M):
        @T.prim_func
        def main(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float16"), C: T.Tensor((M,), "float32")):
            with T.Kernel(1, is_npu=True) as (block, half):
                a = T.alloc_ub((M,), "float32")
                b = T.alloc_ub((M,), "float16")
                c = T.alloc_ub((M,), "float32")
                T.copy(A, a)
                T.copy(B, b)
                T.tile.add(c, a, b)  # mistake
                T.copy(c, C)

        return main

    with refused("T110", at="T.tile.add", message="different element types", help="cast"):
        factory(128)
