"""A slice that starts at an argument of the call and exceeds its buffer: a run-time error in the author's terms."""

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
