"""An atomic addition of one global tensor to another."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_sum_of_two_tensors(refused):
    @tilelang.jit(target="ascendc")
    def factory(M):
        @T.prim_func
        def main(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
            with T.Kernel(1, is_npu=True) as (block, half):
                T.tile.atomic_add(B, A)  # mistake

        return main

    with refused("T132", at="T.tile.atomic_add", message="adds a buffer on the chip to a global tensor",
                 help="the source a buffer on the chip"):
        factory(64)
