"""A buffer has as many elements as the tensor, which is no multiple of the lanes of a register: loads take no mask."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T

N = 100


@tilelang.jit(target="pto", chip="950")
def factory():
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1) as _:
            a = T.alloc_shared((N,), "float32")
            b = T.alloc_shared((128,), "float32")
            T.copy(A, a)
            with T.SimdVF():
                for i in T.serial(2):
                    m = T.vmi.create_mask(N - i * 64, size=64)
                    T.vmi.vstore(T.vmi.vload(a[i * 64], size=64), b[i * 64], m)  # mistake
            T.copy(b[0:N], B)

    return main


def test_the_lanes_are_named(refused):
    kernel = factory()
    with refused("T502", at="T.vmi.vload", message="lanes 64 to 127 of a register are not all inside a, which has 100 elements",
                 help="as many elements as the registers have lanes"):
        kernel(np.zeros(N, np.float32), np.zeros(N, np.float32))
