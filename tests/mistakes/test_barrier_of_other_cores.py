"""T.sync_all of Cube cores, where Vector cores should wait for each other."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(3, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            with T.Scope("V"):
                T.copy(A, x)
                T.sync_all("AICOnly")  # mistake
                T.copy(x, B)

    return main


def test_barrier_of_other_cores(refused):
    with refused("T161", at="T.sync_all", message="no vector core takes part in this barrier", help="T.sync_all()"):
        factory().mlir()
