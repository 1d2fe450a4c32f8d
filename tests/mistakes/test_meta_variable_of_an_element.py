"""T.meta_var of an element of a buffer."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            first = T.meta_var(x[0])  # mistake
            T.vadd(x, first, x)
            T.copy(x, B)

    return main


def test_meta_variable_of_an_element(refused):
    with refused("T145", at="T.meta_var", message="the name would refer to the element", help="bind the element itself"):
        factory().mlir()
