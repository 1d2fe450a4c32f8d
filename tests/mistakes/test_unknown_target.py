"""GPU source whose target was not changed, and a misspelt one."""

import tilelang_npu as tilelang
import tilelang_npu.language as T


def _kernel():
    @T.prim_func
    def main(A: T.Tensor((64,), "float16")):
        with T.Kernel(1, is_npu=True) as (block, half):
            a = T.alloc_ub((64,), "float16")
            T.copy(A, a)

    return main


def test_gpu_target(refused):
    with refused("T702", at="target", message="'cuda' is not an Ascend NPU", help='target="npuir"'):
        tilelang.compile(_kernel(), target="cuda")  # mistake


def test_misspelt_target(refused):
    with refused("T703", at="target", message="'ascendk'", help="did you mean 'ascendc'"):
        tilelang.compile(_kernel(), target="ascendk")  # mistake
