"""The launches of kernels as profilers list them: a row for each ``T.Kernel``, one after the other."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.jit.launched_kernels import csv_text, launched_kernels
from tilelang_npu.runtime.kernel import listeners


@tilelang.jit
def twice(N: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")) -> None:
        with T.Kernel(N // 64) as block:
            a = T.alloc_shared((64,), "float32")
            T.copy(A[block * 64], a)
            T.copy(a, B[block * 64])
        with T.Kernel(2) as block:
            b = T.alloc_shared((N // 2,), "float32")
            T.copy(B[block * (N // 2)], b)
            T.copy(b, A[block * (N // 2)])

    return main


@tilelang.jit(out_idx=[2])
def product(M: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((M, 64), "float32")) -> None:
        with T.Kernel(M // 64) as block:
            a, b = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
            c, d = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
            T.copy(A[block * 64, 0], a)
            T.copy(B, b)
            T.gemm(a, b, c, clear_accum=True)
            for i, j in T.Parallel(64, 64):
                d[i, j] = T.exp(c[i, j])
            T.copy(d, C[block * 64, 0])

    return main


def test_each_launch_of_a_call_is_a_row() -> None:
    kernel = twice(256)
    kernel(np.ones(256, np.float32), np.zeros(256, np.float32))
    launch = kernel.last_launch
    first, second = launched_kernels(kernel, launch, 3)
    assert [one.duration_us for one in (first, second)] == [part.time_us for part in launch.parts]
    assert (first.blocks, second.blocks) == (4, 2) and {first.cores, second.cores} == {"AIV"}
    assert first.step == second.step == 3 and first.mixed_blocks == 0
    assert second.start_us == first.start_us + first.duration_us
    assert second.start_us + second.duration_us <= listeners.clock_us() + 1e-6


def test_a_kernel_of_both_cores_counts_its_vector_cores() -> None:
    kernel = product(128)
    kernel(np.ones((128, 64), np.float16), np.ones((64, 64), np.float16))
    (one,) = launched_kernels(kernel, kernel.last_launch)
    assert (one.name, one.cores, one.blocks, one.step) == (kernel.name, "MIX", 2, None)
    assert one.mixed_blocks == 2 * kernel.chip.aiv_per_aic


def test_cells_with_commas_come_back() -> None:
    rows = [["name", "us"], ["a,b", "1.5"], ['"', ""]]
    assert list(csv.reader(csv_text(rows).splitlines())) == rows
