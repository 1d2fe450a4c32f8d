"""Wrong: arguments that a function does not have."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(out_idx=[-1])
def factory(n: int):
    @T.prim_func
    def main(A: T.Tensor((n, n), "float16"), C: T.Tensor((n, n), "float32")):
        with T.Kernel(1, npu=True) as (cid, vid):  # wrong
            a = T.alloc_shared((n, n), type="float16")  # wrong
            c = T.alloc_fragment((n, n), "float32")
            T.copy(A, c, sizes=[n, n])  # wrong
            T.gemm(c, c, c, transposeA=True)  # wrong
            for k in T.Pipelined(4, stages=2):  # wrong
                T.vexp(c, dst=c)  # wrong
            T.reduce_sum(c, c, axis=0)  # wrong
            T.tile.clamp(c, c, 0.0, max_scalar=6.0, min=1.0)  # wrong
            T.copy(c, C)

    return main
