"""An array with more rows than the parameter declares, which the npuir branch accepts for some kernels, but not for this
one."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir", out_idx=[-1])
def factory(M, N):
    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float16"),  # mistake
        B: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((M, N), "float16")
            T.copy(A, a)
            T.copy(a, B)

    return main


def test_a_longer_argument_is_named_and_not_the_copy(refused):
    with refused("T403", at="A", message=r"A has shape \[32, 64\]; the array has 33 rows",
                 help="pass an array of the declared shape"):
        factory(32, 64)(np.ones((33, 64), np.float16))
