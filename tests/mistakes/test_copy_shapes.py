"""A copy between tiles of different shapes."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_shapes_differ(refused):
    @tilelang.jit(target="ascendc")
    def factory(M):
        @T.prim_func
        def main(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32")):
            with T.Kernel(1, is_npu=True) as (block, half):
                wide = T.alloc_ub((16, 64), "float32")
                narrow = T.alloc_ub((16, 48), "float32")
                T.copy(A[0:16, 0:64], wide)
                T.copy(wide, narrow)  # mistake
                T.copy(narrow, B[0:16, 0:48])

        return main

    with refused("T131", at="T.copy", message=r"64.*48", help="."):
        factory(128)
