"""The benchmark of mutants: it tests each kernel of a module, and classifies races inside a gemm that schedules cannot show."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TWO = """
import numpy as np
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(out_idx=[-1], target="npuir")
def make():
    @T.prim_func
    def main(X: T.Tensor((2, 16, 64), "float32"), Z: T.Tensor((2, 16, 64), "float32"), Y: T.Tensor((2, 16, 64), "float32")):
        with T.Kernel(2, is_npu=True) as (cid, _):
            x = T.alloc_shared((16, 64), "float32")
            T.copy(X[cid, 0, 0], x)
            T.vexp(x, x)
            T.copy(x, Z[cid, 0, 0])
        with T.Kernel(2, is_npu=True) as (cid, _):
            z = T.alloc_shared((16, 64), "float32")
            T.copy(Z[cid, 0, 0], z)
            T.vadd(z, 1.0, z)
            T.copy(z, Y[cid, 0, 0])
    return main

make()(np.zeros((2, 16, 64), np.float32), np.zeros((2, 16, 64), np.float32))
"""

GEMM = """
import numpy as np
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(out_idx=[-1], target="npuir")
def make():
    @T.prim_func
    def main(A: T.Tensor((32, 512), "float16"), B: T.Tensor((512, 256), "float16"), C: T.Tensor((32, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((32, 128), "float16")
            b = T.alloc_shared((128, 256), "float16")  # more than half of L0B: a gemm loads it and a in two parts
            c = T.alloc_fragment((32, 256), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 128], a)
                T.copy(B[k * 128, 0], b)
                T.gemm(a, b, c, initC=(k == 0))
            T.copy(c, C)
    return main

rng = np.random.default_rng(0)
make()(rng.standard_normal((32, 512)).astype(np.float16), rng.standard_normal((512, 256)).astype(np.float16))
"""


@pytest.fixture(scope="module")
def benchmark() -> Iterator[ModuleType]:
    added = str(Path(__file__).resolve().parent.parent / "benchmarks")
    sys.path.insert(0, added)
    try:
        import mutation

        yield mutation
    finally:
        sys.path.remove(added)


def judged(benchmark: ModuleType, folder: Path, text: str, kind: str) -> list[list[Any]]:
    """Returns the verdicts for the mutants of one kind, for each kernel of a script."""
    script = folder / "script.py"
    script.write_text(text)
    found = []
    for call in benchmark.calls_of(script, 2):
        bench = benchmark.Bench(call)
        made = [module for _, one, module in benchmark.mutants(call, 1000, 0) if one == kind]
        found.append([benchmark.judged(module, bench, ["late", "early", "random:0"]) for module in made])
    return found


def test_a_module_of_two_kernels_is_mutated_kernel_by_kernel(benchmark: ModuleType, tmp_path: Path) -> None:
    first, second = judged(benchmark, tmp_path, TWO, "deleted")
    for verdicts in (first, second):  # without either wait the result is wrong, and this is reported
        assert sum(one.fate == "wrong" for one in verdicts) >= 4
        assert all(one.checked and (one.reported or one.fate in ("same", "right")) for one in verdicts)


def test_a_gemm_that_reads_the_first_part_of_an_operand_too_early_is_a_race_that_no_schedule_shows(
        benchmark: ModuleType, tmp_path: Path) -> None:
    (verdicts,) = judged(benchmark, tmp_path, GEMM, "moved up")
    inside = [one for one in verdicts if one.fate == "inside"]
    assert inside and all("race[S201]" in one.reported[0] and "T.gemm" in one.reported[0] for one in inside)
    assert all(one.reported or one.fate in ("same", "right") for one in verdicts)
    assert not any(one.reported and one.fate in ("same", "right") for one in verdicts)
