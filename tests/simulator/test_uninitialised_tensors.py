"""Bytes of a tensor of the call's own that no launch wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.checks.sanitizer import Sanitizer
from tilelang_npu.runtime.jit import recording

RNG = np.random.default_rng(0)


def found(kernel: Any, *arrays: np.ndarray) -> list[str]:
    with recording.record(sanitizer=Sanitizer()) as done:
        kernel(*arrays)
    return [f"{finding.kernel}: {finding.code}" for tally in done.tallies for finding in tally.findings]


def partly(rows: int, written: int, *, used: bool = True, adds: bool = False) -> Any:
    """The first launch leaves ``written`` of the rows of W, the second reads all: B has them only if they are ``used``."""

    @T.prim_func
    def main(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows, 64), "float32")):
        W = T.alloc_global((rows, 64), "float32")
        with T.Kernel(written, threads=128) as row:
            x = T.alloc_shared((1, 64), "float32")
            T.copy(A[row, 0], x)
            T.copy(x, W[row, 0])
        with T.Kernel(rows, threads=128) as row:
            y = T.alloc_shared((1, 64), "float32")
            T.copy(W[row, 0], y)  # reads W
            if not used:
                for i, j in T.Parallel(1, 64):
                    y[i, j] = T.if_then_else(row < written, y[i, j], 0.0)
            T.copy(y, B[row, 0])  # stores B

    return tilelang.compile(main, target="npuir", out_idx=[1])


def line_of(mark: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(mark))


@pytest.mark.filterwarnings("ignore::tilelang_npu.TileWarning")
def test_what_no_launch_wrote_is_found() -> None:
    a = RNG.standard_normal((5, 64)).astype(np.float32)
    kernel = partly(5, 2)
    with recording.record(sanitizer=Sanitizer()) as done:
        kernel(a)
    ((finding,),) = [tally.findings for tally in done.tallies]
    assert (finding.code, finding.kernel) == ("S221", "main_2")
    text = str(finding)
    assert "stale[S221]: GM bytes 512..767 of W are read though no launch wrote them (unwritten)" in text
    assert "256 bytes of B depend on them, the first is byte 512" in text
    for mark in ("# reads W", "# stores B"):
        assert f"test_uninitialised_tensors.py:{line_of(mark)}" in text
    assert [part.hazards[0].code if part.hazards else "" for part in kernel.trace(a).parts] == ["", "S221"]


@pytest.mark.parametrize(("written", "used"), [(5, True), (2, False)])
def test_what_is_written_or_has_no_effect_is_nothing(written: int, used: bool) -> None:
    a = RNG.standard_normal((5, 64)).astype(np.float32)
    kernel = partly(5, written, used=used)
    assert found(kernel, a) == []
    assert [part.hazards for part in kernel.trace(a).parts] == [[], []]


def test_a_nan_from_an_unwritten_tensor_is_reported_without_a_sanitizer() -> None:
    a = RNG.standard_normal((5, 64)).astype(np.float32)
    with pytest.warns(tilelang.TileWarning, match="of W are read though no launch wrote them") as caught:
        assert np.isnan(partly(5, 2)(a)[2:]).all()
    assert (Path(caught[0].filename).name, caught[0].lineno) == (Path(__file__).name, line_of("# reads W"))


def test_a_workspace_of_one_launch_is_looked_at_too() -> None:
    @T.prim_func
    def main(W: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, threads=128) as row:
            x = T.alloc_shared((1, 64), "float32")
            if row > 1:
                T.fill(x, 3.0)
                T.copy(x, W[row, 0])
            T.copy(W[row, 0], x)
            T.copy(x, B[row, 0])

    kernel = tilelang.compile(main, target="npuir", out_idx=[1], workspace_idx=0)
    with pytest.warns(tilelang.TileWarning, match="GM bytes 0..255 of W are read though no launch wrote them"):
        kernel()
    given = tilelang.compile(main, target="npuir", out_idx=[1])
    w = RNG.standard_normal((4, 64)).astype(np.float32)
    assert found(given, w) == []


def test_the_callers_results_hold_what_the_caller_put_there() -> None:
    """An output that the caller passes is no blank."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_shared((64,), "float32")
            T.copy(B, x)
            T.copy(x, C)
        with T.Kernel(1, threads=128):
            y = T.alloc_shared((64,), "float32")
            T.copy(A, y)
            T.copy(y, B)

    kernel = tilelang.compile(main, target="npuir", out_idx=[1, 2])
    a, b, c = RNG.standard_normal((3, 64)).astype(np.float32)
    before = b.copy()
    assert found(kernel, a, b, c) == []
    np.testing.assert_array_equal((b, c), (a, before))
