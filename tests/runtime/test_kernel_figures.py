"""Figures of the kernels of a record: labels, mean times, bottlenecks, on-chip memory."""

from __future__ import annotations

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.jit.jit_kernel import JITKernel
from tilelang_npu.runtime.jit.kernel_figures import figures_of, label_of, mean_times
from tilelang_npu.runtime.jit.recording import record


def scaled(steps: int) -> JITKernel:
    @T.prim_func
    def work(A: T.Tensor((64,), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_shared((64,), "float32")
            T.copy(A, a)
            for _ in T.serial(steps):
                T.vexp(a, a)
            T.copy(a, A)

    return tilelang.compile(work, target="npuir")


def test_figures_are_of_each_kernel_and_of_all_its_calls() -> None:
    first, second = scaled(1), scaled(400)
    a = np.zeros(64, np.float32)
    with record() as done:
        first(a, 1), first(a, 1), second(a, 1)
    label = "work(float32 64, int32) on Ascend910B2"
    assert label_of(first) == label_of(second) == label
    one, other = figures_of(done.tallies)
    assert (one.label, other.label) == (label, f"{label} #2")
    assert mean_times(done.tallies) == {one.label: one.us, other.label: other.us}
    assert one.us == pytest.approx(done.tallies[0].last.time_us, abs=1e-3) and other.us > one.us
    assert (one.bound_by, other.bound_by) == tuple(tally.last.bound_by for tally in done.tallies)
    assert one.memory == other.memory == {"UB": 256}


def test_several_launches_of_a_call_are_taken_together() -> None:
    @T.prim_func
    def twice(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_shared((32,), "float32")
            T.copy(A[0], a)
            T.copy(a, A[32])
        with T.Kernel(1, is_npu=True) as (b, _):
            c = T.alloc_shared((64,), "float32")
            T.copy(A, c)
            T.vexp(c, c)
            T.copy(c, A)

    with record() as done:
        tilelang.compile(twice, target="npuir")(np.zeros(64, np.float32))
    (figures,) = figures_of(done.tallies)
    parts = done.tallies[0].last.parts
    assert len(parts) == 2 and figures.us == pytest.approx(sum(part.time_us for part in parts), abs=1e-3)
    assert figures.memory == {"UB": 256}
    assert figures.bound_by == ", ".join(dict.fromkeys(part.bound_by for part in parts))
