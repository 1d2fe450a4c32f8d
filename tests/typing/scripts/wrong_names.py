"""Wrong: names that the language does not have."""

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.language import alloc_L11  # wrong


@tilelang.jit(out_idx=[-1])
def factory(n: int):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_sharedd((n,), "float32")  # wrong
            b = T.alloc_ub((n,), "float32")
            T.copy(A, b)
            T.tile.ad(b, b, b)  # wrong
            T.vaddd(b, b, b)  # wrong
            T.nonexistent()  # wrong
            if cid > 0:
                for i in T.serial(4):
                    T.barier_all()  # wrong
            T.copy(b, C)

    return main


alloc_L11
