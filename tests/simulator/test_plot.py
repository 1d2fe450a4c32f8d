"""The timeline as a picture: a row per pipe that works, a bar per op."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

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
