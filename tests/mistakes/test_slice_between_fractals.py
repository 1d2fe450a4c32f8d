"""A slice of a matrix in L1 that starts inside of a fractal."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(H: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            T.copy(H, a)
            T.gemm_v0(a[8:40, :], a, c[0:32, :], init=True)  # mistake

    return main


def test_slice_between_fractals(refused):
    with refused("T221", at="T.gemm_v0", message="does not consist of whole fractals of 16 x 16", help="multiples of 16 rows"):
        factory().mlir()
