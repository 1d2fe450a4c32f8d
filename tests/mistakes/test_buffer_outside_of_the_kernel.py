"""An on-chip buffer that is allocated before T.Kernel."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc")
def factory():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16")):
        a = T.alloc_L1((64, 64), "float16")  # mistake
        with T.Kernel(1, is_npu=True) as (cid, vid):
            T.copy(A, a)

    return main


def test_buffer_outside_of_the_kernel(refused):
    with refused("T160", at="T.alloc_L1", message="T.alloc_L1 is outside T.Kernel", help="move it below"):
        factory().mlir()
