"""Every other element by a slice with a step."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            x[::2] = 0.0  # mistake
            T.copy(x, B)

    return main


def test_slice_with_a_step(refused):
    with refused("T141", at="x[::2]", message="a slice with a step is not supported", help="loop"):
        factory().mlir()
