"""``TILELANG_NPU_AS=upstream``: the order, the waits and the launch of TileLang-Ascend's own compilers."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.cli import main
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.reports.upstream_comparison import compare_with_own
from tilelang_npu.runtime.settings import environment

AUTO = {"tl.ascend_auto_cv_combine": True, "tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}
MEASURED = {"rows": 1515.2, "softsign 1024": 518.2, "softsign 512": 1002.2}
"""Microseconds on a 910B2, of kernelbench_tilelang_ascend: the medians of several launches."""


def hinge(rows: int, length: int, tile: int) -> Any:
    """The sum of ``max(0, 1 - p * t)`` of each row."""

    @T.prim_func
    def hinge(P: T.Tensor((rows, length), "float32"), TARGET: T.Tensor((length,), "float32"),
              OUT: T.Tensor((1, rows), "float32")):
        with T.Kernel(rows, is_npu=True) as (row, _):
            p = T.alloc_shared((1, tile), "float32")
            t = T.alloc_shared((1, tile), "float32")
            one = T.alloc_shared((1, tile), "float32")
            loss = T.alloc_shared((1, tile), "float32")
            part = T.alloc_shared((1, 1), "float32")
            total = T.alloc_shared((1, 1), "float32")
            T.tile.fill(total, 0.0)
            T.tile.fill(one, 1.0)
            for i in T.serial(length // tile):
                T.copy(P[row : row + 1, i * tile : (i + 1) * tile], p)
                T.copy(TARGET[i * tile : (i + 1) * tile], t)
                T.tile.mul(loss, p, t)
                T.tile.sub(loss, one, loss)
                T.tile.relu(loss, loss)
                T.reduce_sum(loss, part, dim=-1)
                T.tile.add(total, total, part)
            T.copy(total, OUT[0:1, row : row + 1])

    return tilelang.compile(hinge, target="ascendc", chip="910B2", pass_configs=AUTO)


def softsign(rows: int, length: int, tall: int, wide: int) -> Any:
    """``x / (1 + |x|)``, a block of rows for two Vector cores each."""
    half = tall // 2

    @T.prim_func
    def softsign(A: T.Tensor((rows, length), "float32"), B: T.Tensor((rows, length), "float32")):
        with T.Kernel(rows // tall * (length // wide), is_npu=True) as (cid, vid):
            x = T.alloc_shared((half, wide), "float32")
            below = T.alloc_shared((half, wide), "float32")
            row, column = cid // (length // wide) * tall + vid * half, cid % (length // wide) * wide
            T.copy(A[row, column], x)
            T.tile.abs(below, x)
            T.tile.add(below, below, 1.0)
            T.tile.div(x, x, below)
            T.copy(x, B[row, column])

    return tilelang.compile(softsign, target="ascendc", chip="910B2", pass_configs=AUTO)


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_AS", "upstream")


@pytest.mark.usefixtures("upstream")
@pytest.mark.parametrize(("name", "make"), [
    ("rows", lambda: hinge(1024, 65536, 1024)),
    ("softsign 1024", lambda: softsign(1024, 65536, 16, 1024)),
    ("softsign 512", lambda: softsign(1024, 65536, 16, 512))])
def test_it_takes_the_time_that_a_card_shows(name: str, make: Any) -> None:
    assert make().estimate().time_us == pytest.approx(MEASURED[name], rel=0.15)


def test_this_compiler_waits_less(monkeypatch: pytest.MonkeyPatch) -> None:
    own = hinge(96, 8192, 512)
    monkeypatch.setenv("TILELANG_NPU_AS", "upstream")
    theirs = hinge(96, 8192, 512)
    assert theirs.estimate().time_us > 1.5 * own.estimate().time_us
    barriers = [kernel.mlir().count("pipe_barrier[<PIPE_ALL>]") for kernel in (own, theirs)]
    assert barriers[1] >= barriers[0] + 7, "one after each of the seven statements of the loop"


def test_the_values_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    p, t = rng.standard_normal((20, 256)).astype(np.float32), rng.standard_normal(256).astype(np.float32)
    wanted = np.maximum(0, 1 - p.astype(np.float64) * t).sum(1)
    for compiler in ("", "upstream"):
        monkeypatch.setenv("TILELANG_NPU_AS", compiler)
        out = np.zeros((1, 20), np.float32)
        hinge(20, 256, 64)(p, t, out)
        np.testing.assert_allclose(out[0], wanted, rtol=1e-5)


@pytest.mark.usefixtures("upstream")
def test_an_arange_of_two_axes_is_a_loop_of_scalar_stores() -> None:
    def kernel(shape: tuple[int, ...], strides: list[int]) -> Any:
        @T.prim_func
        def numbers(Y: T.Tensor(shape, "float32")):
            with T.Kernel(1, is_npu=True) as (_core, _):
                y = T.alloc_ub(shape, "float32")
                T.arange(y, strides, 0)
                T.copy(y, Y)

        return tilelang.compile(numbers, target="npuir", chip="910B2C")

    flat, square = (kernel(*one).estimate().time_us for one in (((4096,), [1]), ((64, 64), [64, 1])))
    assert square - flat == pytest.approx(4096 * 2.2e-3, rel=0.1)


def test_another_compiler_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_AS", "triton")
    with pytest.raises(TileError, match=r"T418.*TILELANG_NPU_AS=triton"):
        hinge(20, 256, 64)


SCRIPT = """
import tilelang, numpy as np
import tilelang.language as T

@tilelang.jit(target="ascendc", pass_configs={"tl.ascend_auto_cv_combine": True, "tl.ascend_auto_sync": True,
                                              "tl.ascend_memory_planning": True})
def double(n, tile=256):
    @T.prim_func
    def double(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(1, is_npu=True) as (_c, _v):
            x = T.alloc_shared((tile,), "float32")
            for i in T.serial(n // tile):
                T.copy(X[i * tile : (i + 1) * tile], x)
                T.tile.add(x, x, x)
                T.copy(x, Y[i * tile : (i + 1) * tile])
    return double

y = np.zeros(4096, np.float32)
double(4096)(np.ones(4096, np.float32), y)
assert (y == 2).all()
"""


def test_run_says_what_each_line_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    assert main(["run", str(tmp_path / "script.py"), "--as", "upstream"]) == 0
    out = capsys.readouterr().out
    assert "double compiled by tilelang_npu against compiled by TileLang-Ascend" in out
    assert "T.tile.add(x, x, x)" in out.partition("lines, by their part of the critical path")[2]


def test_it_has_no_effect_with_the_interpreter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    assert main(["run", str(tmp_path / "script.py"), "--as", "upstream", "--interpret"]) == 1
    assert "--as has no effect with --interpret" in capsys.readouterr().err


def test_the_comparison_changes_nothing_for_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread compiles a kernel with this compiler's passes, other threads still compile as TileLang-Ascend does."""
    monkeypatch.setenv("TILELANG_NPU_AS", "upstream")
    seen: list[bool] = []
    with environment.AS.overridden(""):
        assert not environment.as_upstream()
        other = Thread(target=lambda: seen.append(environment.as_upstream()))
        other.start()
        other.join()
    assert seen == [True]
    assert environment.as_upstream()


def test_the_comparison_has_both_times(monkeypatch: pytest.MonkeyPatch) -> None:
    own = hinge(96, 8192, 512).estimate().time_us
    monkeypatch.setenv("TILELANG_NPU_AS", "upstream")
    kernel = hinge(96, 8192, 512)
    theirs = kernel.estimate()
    compared = compare_with_own(kernel, theirs)
    assert compared is not None
    assert str(compared).splitlines()[0].count("compiled by") == 2
    assert f"{own:.2f} -> {theirs.time_us:.2f}" in str(compared).splitlines()[0]
