"""A loop that is written out two thousand times."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            for _ in T.unroll(2000):  # mistake
                x[0] = x[0] + 1.0
            T.copy(x, B)

    return main


def test_unrolled_too_far(refused):
    with refused("T260", at="for", message="2000 iterations; 1024 are the most", help="T.serial"):
        factory().mlir()
