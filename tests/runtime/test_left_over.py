"""A NaN in a result that is due to uninitialised memory: the run names the line that reads it."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileWarning


def sums(clear: bool, out: str = "float32") -> Any:
    """Row sums accumulated over two tiles; without ``clear`` they are added to uninitialised memory."""

    @T.prim_func
    def sums(X: T.Tensor((8, 128), "float32"), Y: T.Tensor((8, 1), out)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_ub((8, 64), "float32")
            part = T.alloc_ub((8, 1), "float32")
            total = T.alloc_ub((8, 1), "float32")
            if clear:
                T.clear(total)
            for step in T.serial(2):
                T.copy(X[0, step * 64], x)
                T.reduce_sum(x, part, dim=1)
                T.vadd(total, part, total)  # reads total
            T.copy(total, Y)

    return tilelang.compile(sums, target="npuir")


def line_of(mark: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(mark))


def test_the_line_that_reads_is_named_once() -> None:
    kernel = sums(False)
    x, y = np.ones((8, 128), np.float32), np.zeros((8, 1), np.float32)
    with pytest.warns(TileWarning) as caught:
        kernel(x, y)
    assert np.isnan(y).all()
    report = caught[0]
    assert (Path(report.filename).name, report.lineno) == (Path(__file__).name, line_of("# reads total"))
    assert re.search(r"stale\[S221\]: UB bytes \d+\.\.\d+ of total are read though nothing in the block wrote them",
                     str(report.message))
    assert "bytes of Y depend on them" in str(report.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(x, y)  # already reported


@pytest.mark.parametrize("x", [np.ones((8, 128), np.float32), np.full((8, 128), np.nan, np.float32)], ids=["numbers", "nan"])
def test_other_results_give_no_message(x: np.ndarray) -> None:
    y = np.zeros((8, 1), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sums(True)(x, y)
    np.testing.assert_array_equal(y, x.sum(1, keepdims=True))


def test_results_are_not_looked_through_for_a_nan_where_no_op_reads_what_nothing_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trace of batched blocks shows that all bytes that they read, on chip and in allocated tensors, are written before."""

    def doubled(columns: int) -> Any:
        @T.prim_func
        def doubled(X: T.Tensor((1024, 256), "float32"), Y: T.Tensor((1024, 256), "float32")):
            with T.Kernel(8, is_npu=True) as (block, _):
                x = T.alloc_ub((128, 256), "float32")
                T.copy(X[block * 128:block * 128 + 128, 0:columns], x[0:128, 0:columns])
                T.vadd(x, x, x)
                T.copy(x, Y[block * 128:block * 128 + 128, 0:256])

        return tilelang.compile(doubled, target="npuir")

    def looked(kernel: Any) -> int:
        calls: list[Any] = []
        with monkeypatch.context() as patched, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            patched.setattr("tilelang_npu.runtime.checks.unwritten_results.has_nan", lambda array: bool(calls.append(array)))
            x, y = np.ones((1024, 256), np.float32), np.zeros((1024, 256), np.float32)
            for _ in range(3):  # the first call has no plan, the second one makes it
                calls.clear()
                kernel(x, y)
        return len(calls)

    whole, part = doubled(256), doubled(128)
    assert looked(whole) == 0
    assert looked(part) == 1
    with pytest.warns(TileWarning, match="S221"):
        part(np.ones((1024, 256), np.float32), np.zeros((1024, 256), np.float32))
    assert not whole.last_launch.may_be_stale
    assert whole.last_launch.stale() is None


def test_of_long_blocks_only_the_first_kinds_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result of the last block depends on bytes that nothing wrote; the blocks before it write all that they read."""
    @T.prim_func
    def main(X: T.Tensor((4, 64), "float32"), Y: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, is_npu=True) as (block, _):
            x = T.alloc_ub((64,), "float32")
            for i in range(block + 1):
                T.copy(X[i, 0:32], x[0:32])
            if block < 3:
                T.copy(X[block, 32:64], x[32:64])
            T.copy(x, Y[block, 0:64])

    kernel = tilelang.compile(main, target="npuir")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel(np.ones((4, 64), np.float32), np.zeros((4, 64), np.float32))
    launch = kernel.last_launch
    assert launch.stale().code == "S221"
    events = [sum(map(len, run.streams)) for run in launch.distinct_blocks]
    for most, found in ((sum(events), True), (sum(events) - 1, False), (1, False)):
        monkeypatch.setattr("tilelang_npu.simulator.result.launch_result.STALE_EVENTS", most)
        assert (launch.stale() is not None) == found
