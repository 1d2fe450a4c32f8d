"""A vector function, compiled for a chip without vector registers."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="pto", chip="910B2")
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1) as _:
            a = T.alloc_shared((64,), "float32")
            b = T.alloc_shared((64,), "float32")
            T.copy(A, a)
            with T.SimdVF():  # mistake
                T.vmi.vstore(T.vmi.vload(a[0], size=64), b[0])
            T.copy(b, B)

    return main


def test_the_chips_with_registers_are_named(refused):
    with refused("T190", at="T.SimdVF()", message=r"T\.SimdVF computes on vector registers, which Ascend910B2 does not have",
                 help="Ascend910_95"):
        factory()
