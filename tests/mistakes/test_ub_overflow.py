"""More tiles than UB holds."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


def test_ub_overflows(refused):
    @tilelang.jit(target="ascendc", pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True})
    def factory(N):
        @T.prim_func
        def main(X: T.Tensor((64, N), "float32"), Y: T.Tensor((64, N), "float32")):
            with T.Kernel(1, is_npu=True) as (block, half):
                x = T.alloc_ub((32, N), "float32")  # mistake
                y = T.alloc_ub((32, N), "float32")
                T.copy(X[half * 32, 0], x)
                T.tile.exp(y, x)
                T.copy(y, Y[half * 32, 0])

        return main

    with refused("T104", at="T.alloc_ub", message=r"UB needs 262 ?144 bytes", help="."):
        factory(1024)
