"""An element of a matrix with one index; the other axis has one element."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="npuir")
def factory():
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((16, 64), "float32")
            best = T.alloc_shared((16, 1), "float32")
            T.copy(A, x)
            T.reduce_max(x, best, dim=1)
            for i, j in T.Parallel(16, 64):
                x[i, j] = x[i, j] - best[i]  # mistake
            T.copy(x, B)

    return main


def test_missing_index(refused):
    with refused("T141", at="x[i, j] - best[i]", message=r"best \[1\] float32 is not a scalar",
                 help=r"best has 2 axes: write an index for each, best\[i, 0\]"):
        factory()
