"""More Vector cores in a block than the chip has."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc")
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=3, is_npu=True) as (cid, vid):  # mistake
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)

    return main


def test_three_vector_cores(refused):
    with refused("T150", at="T.Kernel", message="threads=3; a block has 1 or 2 vector cores", help="leave threads out"):
        factory().mlir()
