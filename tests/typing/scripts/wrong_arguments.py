"""Wrong: too few operands, and operands that are none."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1])
def factory(n: int):
    @T.prim_func
    def main(A: T.Tensor((n, n), "float16"), C: T.Tensor((n, n), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub(n, n, "float16")  # wrong
            b = T.alloc_ub((n, n))  # wrong
            c = T.alloc_ub((n, n), 16)  # wrong
            d = T.alloc_ub((n, n), "float16")
            T.vadd(d, d)  # wrong
            T.tile.add("d", d, d)  # wrong
            T.vexp(1.0, d)  # wrong
            T.copy(A, 3)  # wrong
            T.set_flag(0, "v", 1)  # wrong
            T.tile.topk(d, d, 8)  # wrong
            T.copy(d, C)

    return main
