"""The timeline as a picture: a row per pipe that works, a bar per op."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from captured import KERNELS, captured
from tilelang_npu import TileError
from tilelang_npu.simulator.result.profile.svg_charts import COLOURS
from tilelang_npu.target.chip_data import PIPES


@pytest.fixture(scope="module")
def launch() -> Any:
    (run,) = captured(next(file for file in KERNELS if file.stem == "softmax_mixed"))[:1]
    return run.launch


def test_rows_and_bars(launch: Any, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    axes = launch.plot(block=1)
    slices = [event for event in launch.trace()["traceEvents"] if event["ph"] == "X" and event["pid"] == 0]
    assert {label.get_text() for label in axes.get_yticklabels()} == {f"AIV0 {PIPES[event['tid']]}" for event in slices}
    assert len(axes.patches) == len(slices)
    assert {text.get_text(): matplotlib.colors.to_hex(bar.patches[0].get_facecolor())
            for text, bar in zip(axes.get_legend().get_texts(), axes.containers, strict=True)} == {
                PIPES[event["tid"]]: COLOURS[PIPES[event["tid"]]] for event in slices}
    assert launch.plot(0, axes) is axes
    axes.figure.savefig(tmp_path / "t.png")
    assert (tmp_path / "t.png").stat().st_size > 1000
    matplotlib.pyplot.close("all")


class Drawn:
    """Axes that keep the bars and the labels of the rows, in place of matplotlib's."""

    def __init__(self) -> None:
        self.bars: list[tuple[Any, str, int, float, float]] = []
        self.labels: list[str] = []

    def barh(self, rows: list[int], widths: list[float], *, left: list[float], label: str, color: str,
             **style: Any) -> None:
        self.bars += [(label, color, row, start, width) for row, start, width in zip(rows, left, widths, strict=True)]

    def set_yticks(self, places: range, labels: list[str]) -> None:
        assert list(places) == list(range(len(labels)))
        self.labels = labels

    def __getattr__(self, name: str) -> Any:
        return lambda *texts, **style: None


def test_each_op_is_a_bar_in_the_row_of_its_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the Cube core come first. Starts and widths are in microseconds."""
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            a = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.gemm(a, a, c, initC=True)
            T.vexp(c, c)
            T.copy(c, C)

    kernel = tilelang.compile(main, target="npuir")
    kernel(np.zeros((32, 32), np.float16), np.zeros((32, 32), np.float32))
    launch, axes = kernel.last_launch, Drawn()
    monkeypatch.setitem(sys.modules, "matplotlib", SimpleNamespace(pyplot=None))
    assert launch.plot(0, axes) is axes
    cores = [label.split()[0] for label in axes.labels]
    assert cores == sorted(cores) and {"AIC", "AIV0"} <= set(cores)
    slices = [event for event in launch.trace()["traceEvents"] if event["ph"] == "X" and event["cat"] == "pipe"]
    names = {event["tid"]: PIPES[event["tid"]] for event in slices}
    assert all(axes.labels[row].split()[1] == pipe and colour == COLOURS[pipe] for pipe, colour, row, *_ in axes.bars)
    assert sorted((axes.labels[row].split()[1], start, width) for _, _, row, start, width in axes.bars) == [
        (pipe, pytest.approx(start, abs=0.001), pytest.approx(width, abs=0.001))  # whole nanoseconds
        for pipe, start, width in sorted((names[event["tid"]], event["ts"], event["dur"]) for event in slices)]


def test_mistakes(launch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TileError, match="there is no block"):
        launch.plot(10_000)
    load = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return load(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(TileError, match="needs matplotlib") as caught:
        launch.plot()
    assert "[viz]" in caught.value.help
