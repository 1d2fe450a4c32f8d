"""A gemm whose operands do not share K."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_k_differs(refused):
    @tilelang.jit(target="npuir")
    def factory(M):
        @T.prim_func
        def main(A: T.Tensor((M, 64), "float16"), B: T.Tensor((32, M), "float16"), C: T.Tensor((M, M), "float32")):
            with T.Kernel(1, is_npu=True) as (block, _):
                a = T.alloc_L1((M, 64), "float16")
                b = T.alloc_L1((32, M), "float16")
                c = T.alloc_L0C((M, M), "float32")
                T.copy(A, a)
                T.copy(B, b)
                T.gemm(a, b, c, initC=True)  # mistake
                T.copy(c, C)

        return main

    with refused("T120", at="T.gemm", message=r"K .*64.*32", help="."):
        factory(128)
