"""Wrong: loop variables that do not match, and frames that are none."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1])
def factory(n: int):
    @T.prim_func
    def main(A: T.Tensor((n, n), "float16"), C: T.Tensor((n, n), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((n, n), "float16")
            for i, j in T.serial(n):  # wrong
                T.copy(A, a)
            for i, j, k in T.Parallel(n, n):  # wrong
                a[i, j] = 0
            for i in T.Parallel():  # silent: any number of extents
                a[i, 0] = 0
            with T.Scop("V"):  # wrong
                T.copy(a, C)
            for i in T.serial("n"):  # wrong
                T.copy(a, C)

    return main
