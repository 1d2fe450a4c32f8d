"""A slice that exceeds its buffer by a number of the call: a run-time error in the author's terms."""

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", out_idx=[-1], pass_configs={"tl.ascend_auto_sync": True})
def factory(M):
    @T.prim_func
    def main(n: T.int32, B: T.Tensor((M,), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((M,), "float16")
            T.tile.fill(a, 0.0)
            T.tile.fill(a[n:n + 16], 1.0)  # mistake
            T.copy(a, B)

    return main


def test_an_access_past_the_end_names_the_call_and_elements(refused):
    message = r"^T\.tile\.fill takes 60\.\.75 of axis 0 of a, which has 0\.\.63 in block 0$"
    with refused("T502", at="T.tile.fill", message=message, help="clamp the start"):
        factory(64)(60)


@tilelang.jit(target="npuir", out_idx=[-1])
def converted():
    @T.prim_func
    def main(X: T.Tensor((64, 32), "float16"), n: T.int32, Y: T.Tensor((4, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((4, 32), "float32")
            T.clear(x)
            T.copy(X[0:n, 0:32], x[0:n, :])  # mistake: loaded as float16 to a temporary of the compiler
            T.copy(x, Y)

    return main


def test_a_temporary_of_the_compiler_is_named_by_the_authors_buffer(refused):
    message = r"^T\.copy takes 0\.\.8 of axis 0 of the temporary tile of x, which has 0\.\.3 in block 0$"
    with refused("T502", at="T.copy", message=message, help="clamp the start"):
        converted()(np.ones((64, 32), np.float16), 9)
