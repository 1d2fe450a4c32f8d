"""Wrong host code that uses a kernel."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(outidx=[-1])  # wrong
def misspelt(n: int):
    @T.prim_func
    def main(A: T.Tensor((n,), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            T.barrier_all()

    return main


@tilelang.jit(out_idx=[-1])
def factory(n: int):
    @T.prim_func
    def main(A: T.Tensor((n,), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            T.barrier_all()

    return main


factory(1, 2)  # wrong
factory("one")  # wrong
kernel = factory(16)
kernel.mlirr()  # wrong
kernel.mlir(stages="hivm")  # wrong
tilelang.jitt  # wrong
tilelang.compile(factory)  # wrong
