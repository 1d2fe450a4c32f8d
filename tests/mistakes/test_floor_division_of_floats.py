"""T.vfloordiv of floating-point elements, which only T.vdiv and T.vfloor divide."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            T.vfloordiv(x, 3.0, x)  # mistake
            T.copy(x, B)

    return main


def test_floor_division_of_floats(refused):
    with refused("T110", at="T.vfloordiv", message="does not work on float32", help="int32"):
        factory().mlir()
