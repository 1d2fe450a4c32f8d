"""More blocks than a launch has."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir", out_idx=[-1])
def factory(M):
    @T.prim_func
    def main(A: T.Tensor((M,), "float16"), B: T.Tensor((M,), "float16")):
        with T.Kernel(M, is_npu=True) as (cid, _):  # mistake
            a = T.alloc_shared((1,), "float16")
            T.copy(A[cid], a)
            T.atomic_add(B[cid], a)

    return main


def test_a_grid_of_too_many_blocks_has_its_line(refused):
    with refused("T406", at="T.Kernel", message="100000 blocks, and a launch has at most 65535", help=r"T\.Persistent"):
        factory(100000)(np.ones(100000, np.float16))
