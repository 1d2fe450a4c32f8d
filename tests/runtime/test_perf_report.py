"""Sweeps over sizes: times, gaps, and the interface of Triton's scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.runtime.reports.perf_report import Sweep
from tilelang_npu.testing import Benchmark, perf_report


def about(**changes: Any) -> Benchmark:
    given: dict[str, Any] = {"x_names": ["n"], "x_vals": [1, 2, 4], "line_arg": "by", "line_vals": [10, 100],
                             "line_names": ["ten", "hundred"], "plot_name": "products", "ylabel": "us", **changes}
    return Benchmark(**given)


def test_each_size_is_measured_for_each_curve(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    @perf_report(about(args={"more": 1}))
    def product(n: int, by: int, more: int) -> float:
        return float(n * by + more)

    found = product.run(print_data=True, save_path=tmp_path / "made")
    assert isinstance(found, Sweep)
    assert [[point.value for point in row] for row in found.points.values()] == [[11, 21, 41], [101, 201, 401]]
    assert capsys.readouterr().out == ("products, us\n"
                                       "n  ten  hundred\n"
                                       "1   11      101\n"
                                       "2   21      201\n"
                                       "4   41      401\n")
    assert (tmp_path / "made" / "products.svg").read_text() == found.picture()
    assert json.loads(json.dumps(found.to_dict()))["rows"][1] == {"n": 2, "ten": 21, "hundred": 201}
    assert product(n=3, by=2, more=0) == 6
    assert "<td>201</td>" in found._repr_html_()


def test_a_picture_stays_in_its_folder_whatever_the_plot_is_called(tmp_path: Path) -> None:
    @perf_report(about(plot_name="../us / call"))
    def product(n: int, by: int) -> float:
        return float(n * by)

    product.run(save_path=tmp_path / "made")
    assert [*tmp_path.iterdir()] == [tmp_path / "made"]
    assert [file.name for file in (tmp_path / "made").iterdir()] == ["___us _ call.svg"]


def test_several_names_take_one_value_or_one_each_and_values_bring_their_ends() -> None:
    @perf_report([about(x_names=["m", "n"], x_vals=[(2, 3), 4], styles=[("red", "-"), ("blue", "--")]), about(x_names=["m"])])
    def triple(m: int, by: int, n: int = 1) -> tuple[float, float, float]:
        return m * n * by, m * n * by - 1, m * n * by + 2

    both = triple.run()
    assert isinstance(both, list)
    assert [(point.value, point.low, point.high) for point in both[0].points["ten"]] == [(60, 59, 62), (160, 159, 162)]
    drawn = both[0].picture()
    assert 'stroke="red" stroke-width="2" fill="none"/>' in drawn
    assert 'stroke="blue" stroke-width="2" fill="none" stroke-dasharray="6 4"/>' in drawn


@tilelang.jit(out_idx=[-1], target="npuir")
def doubled(rows: int, tile: int) -> Any:
    @T.prim_func
    def doubled(A: T.Tensor((rows, 512), "float32"), B: T.Tensor((rows, 512), "float32")):  # type: ignore[no-untyped-def]
        with T.Kernel(rows // tile, is_npu=True) as (i, _):
            a = T.alloc_ub((tile, 512), "float32")
            T.copy(A[i * tile, 0], a)
            T.vadd(a, a, a)
            T.copy(a, B[i * tile, 0])

    return doubled


def test_launches_are_drawn_with_their_error_and_what_does_not_fit_is_a_gap_with_its_reason() -> None:
    @perf_report(about(x_names=["rows"], x_vals=[256, 512], line_arg="tile", line_vals=[16, 128], line_names=["16", "128"]))
    def timed(rows: int, tile: int) -> Any:
        return doubled.compile(rows, tile).estimate()

    found = timed.run()
    assert isinstance(found, Sweep)
    launch = doubled.compile(256, 16).estimate()
    assert launch.error is not None
    first = found.points["16"][0]
    assert (first.value, first.low, first.high) == pytest.approx(
        (launch.time_us, launch.time_us * (1 - launch.error), launch.time_us * (1 + launch.error)))
    assert [point.value for point in found.points["128"]] == [None, None]
    assert "128, rows 256, 512: error[T104]: the tile does not fit" in str(found)
    assert str(found).count("T104") == 1


def test_a_benchmark_that_measures_nothing_is_refused() -> None:
    for changes in ({"line_names": ["ten"]}, {"x_vals": []}, {"x_vals": [(1, 2)]}):
        with pytest.raises(TileError, match="T424"):
            about(**changes)

    @perf_report(about())
    def never(n: int, by: int) -> float:
        raise TileError("it does not fit", code="T104")

    found = never.run()
    assert isinstance(found, Sweep)
    with pytest.raises(TileError, match="all measurements failed"):
        found.picture()
    assert "<svg" not in found._repr_html_()


def test_outside_of_a_notebook_a_plot_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    perf_report(about())(lambda n, by: n * by).run(show_plots=True)
    assert capsys.readouterr().out == "products.svg\n"
    assert (tmp_path / "products.svg").read_text().startswith("<svg ")
