"""A result tile larger than L0C."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_l0c_overflows(refused):
    @tilelang.jit(target="npuir", pass_configs={"tl.disable": ["split-tiles"]})
    def factory(M, N, K):
        @T.prim_func
        def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
            with T.Kernel(1, is_npu=True) as (block, _):
                a = T.alloc_shared((M, K), "float16")
                b = T.alloc_shared((K, N), "float16")
                c = T.alloc_fragment((M, N), "float32")  # mistake
                T.copy(A, a)
                T.copy(B, b)
                T.gemm(a, b, c, initC=True)
                T.copy(c, C)

        return main

    with refused("T104", at="T.alloc_fragment", message=r"L0C needs 262 ?144 bytes", help="."):
        factory(256, 256, 64)
