"""Right: tuning, profiling, and reports of a kernel."""

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.autotuner import autotune


@autotune(configs=[{"tile": 32}, {"tile": 64}])
@tilelang.jit(out_idx=[-1], target="npuir", pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True})
def copied(n, tile=64):
    @T.prim_func
    def main(A: T.Tensor((n,), "float16"), C: T.Tensor((n,), "float16")):
        with T.Kernel(T.ceildiv(n, tile), is_npu=True) as (block, _):
            a = T.alloc_ub((tile,), "float16")
            T.copy(A[block * tile], a)
            T.printf("%d\n", block)
            T.copy(a, C[block * tile])

    return main


def report(kernel: tilelang.JITKernel) -> dict[str, Any]:
    kernel.get_profiler().do_bench()
    return {"stages": kernel.stages(), "memory": kernel.memory_report(), "sync": kernel.sync_report()}


print(report(copied(256)))
