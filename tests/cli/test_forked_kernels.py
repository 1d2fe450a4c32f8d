"""The kernels of forked processes: each process reports its own runs, and the summary names the processes and their times."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.cli.forked_kernels import ForkedKernel, ForkedKernels, summaries
from tilelang_npu.runtime.jit.recording import record


@tilelang.jit(out_idx=[-1], target="npuir")
def doubled(count: int) -> Any:
    @T.prim_func
    def doubled(X: T.Tensor((count,), "float32"), Y: T.Tensor((count,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_shared((count,), "float32")
            T.copy(X, x)
            T.vadd(x, x, x)
            T.copy(x, Y)

    return doubled


def work(runs: int) -> None:
    kernel = doubled(64)
    for _ in range(runs):
        kernel(np.ones(64, np.float32))


def test_a_script_without_processes_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with record() as running:
        collected = ForkedKernels(running)
        work(1)
        assert list(tmp_path.iterdir()) == []
        assert collected.close() == []


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_each_process_reports_its_own_runs() -> None:
    with record() as running:
        work(1)  # of this process: its record, not theirs
        collected = ForkedKernels(running)
        context = multiprocessing.get_context("fork")
        processes = [context.Process(target=work, args=(runs,)) for runs in (0, 2, 3)]
        for one in processes:
            one.start()
        for one in processes:
            one.join(60)
        found = collected.close()
    assert [one.exitcode for one in processes] == [0, 0, 0]
    assert sorted(one.count for one in found) == [2, 3]
    assert sorted(one.process for one in found) == [1, 2]
    assert all(one.summary.startswith("doubled") and one.findings == () for one in found)
    assert collected.close() == [], "the files are removed"


def test_a_summary_for_each_kernel() -> None:
    def one(process: int, label: str, count: int, total: float, *findings: str) -> ForkedKernel:
        return ForkedKernel(process, label, f"{label} summary {process}", count, total, findings)

    texts = summaries([one(1, "a", 2, 6.0), one(2, "a", 1, 5.0, "race"), one(1, "b", 1, 1.0)])
    assert texts == ["a summary 1\n  processes 2, with 3 launches of 3.0 to 5.0 us; the first process is shown"
                     "\n\nin process 2: race",
                     "b summary 1\n  processes 1, with 1 launch of 1.0 to 1.0 us; the first process is shown"]
