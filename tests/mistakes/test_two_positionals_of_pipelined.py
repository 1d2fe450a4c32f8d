"""T.Pipelined with the number of stages as its second positional argument."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
def factory():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((64,), "float32")
            T.copy(A, x)
            for _ in T.Pipelined(4, 2):  # mistake
                T.tile.add(x, x, 1.0)
            T.copy(x, B)

    return main


def test_two_positionals_of_pipelined(refused):
    with refused("T150", at="T.Pipelined", message="never runs: the second argument is `stop`", help="num_stages=2"):
        factory().mlir()
