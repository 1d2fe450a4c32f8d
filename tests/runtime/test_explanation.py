"""``explain()``: its statements on memories, loops, pipelines, transfers between the cores and waits agree with the compiled
kernel."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.cli import main
from tilelang_npu.cli.script import execute
from tilelang_npu.dialects.ir.changes import Smaller
from tilelang_npu.dialects.ir.remarks import REFUSED, Remark
from tilelang_npu.runtime.reports.edit_trials import Trials, TriedEdit
from tilelang_npu.runtime.reports.explanation import Explanation

ROOT = Path(__file__).resolve().parents[2]


def page(name: str) -> Any:
    (tally, *_) = execute(ROOT / "examples" / f"{name}.py", [], "__main__").record.tallies
    return tally.kernel.explain(), tally.kernel


def test_buffers_and_hand_overs_of_both_cores() -> None:
    made, kernel = page("flash_attention")
    rows = {line.split()[0]: line for line in made.sections["buffers"]}
    assert "  L1 " in rows["q"]
    assert "L0C" in rows["scores"] and "UB" in rows["scores"] and "workspace" in rows["scores"]
    assert sorted(line.split("  ")[0] for line in made.sections["hand-overs"]) == [
        "AIC.FIX -> AIV.MTE2", "AIC.FIX -> AIV.MTE2", "AIV.MTE3 -> AIC.MTE2"]
    assert len(made.sections["memory"]) == len(kernel.memory_report().memories)
    flags = sum(entry.what.startswith("wait for") for entry in kernel.sync_report().entries)
    assert flags and "flags between the cores" in made.sections["waits"][0]
    launch = kernel.last_launch
    time = f"{launch.time_us:.1f} us +- {100 * launch.error:.0f} %: {launch.split}"
    (rate,) = made.rates
    assert rate in launch.summary()
    none = f"edits that win most, tried\n  {made.trial_note}"
    assert str(made).startswith(f"{kernel.name} on {kernel.chip.name}\n\ntime\n  {time}\n  {rate}\n\n{none}\n\nbuffers\n")
    assert re.fullmatch(r"none of \d+ edits that were tried saves 1%", made.trial_note)


def test_a_pipeline_names_what_its_iterations_take_in_turn() -> None:
    made, _ = page("gemm")
    (line,) = made.sections["pipelines"]
    assert "num_stages=2" in line and "(L1)" in line
    assert "loops" not in made.sections


@pytest.mark.filterwarnings("ignore:T149")  # of the order of its points
def test_loops_have_their_form_or_the_reason_against_it() -> None:
    @tilelang.jit(target="npuir")
    def factory() -> Any:
        @T.prim_func
        def kernel(X: T.Tensor((8, 16), "float32"), Y: T.Tensor((8, 16), "float32")):
            with T.Kernel(1, is_npu=True) as (_b, _):
                x = T.alloc_shared((8, 16), "float32")
                y = T.alloc_shared((8, 16), "float32")
                T.copy(X, x)
                for i, j in T.Parallel(8, 16):
                    y[i, j] = T.exp(x[i, j]) + x[i, j]
                for i, j in T.Parallel(8, 15):
                    y[i, j + 1] = y[i, j]
                T.copy(y, Y)

        return kernel

    first, second = factory().explain().sections["loops"]
    assert first.endswith("T.Parallel 8x16  vector: exp, add")
    assert second.endswith("T.Parallel 8x15  point by point: a point reads an element that another point writes")


def test_at_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slower = (ROOT / "examples" / "softmax.py").read_text(encoding="utf-8").replace("tile=16", "tile=2")
    (tmp_path / "softmax.py").write_text(slower, encoding="utf-8")
    assert main(["compile", str(tmp_path / "softmax.py"), "--explain"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("softmax on Ascend910B2\n\ntime\n  ")
    assert re.fullmatch(r"  \d+ GB/s, \d+ % of what L2 gives; bound by .+", out.splitlines()[4])
    assert out.splitlines()[6] == "edits that win most, tried"
    assert out.splitlines()[7].startswith("  line 15: tile=16 in place of 2 ")
    assert "\n\nbuffers\n" in out and "hivm.hir" not in out


@pytest.mark.parametrize("other", [["--generic"], ["--locations"], ["--annotate"], ["--stage", "tile"]])
def test_what_would_do_nothing_is_an_error(other: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["compile", str(ROOT / "examples" / "softmax.py"), "--explain", *other])
    assert left.value.code == 2
    assert "--explain prints no text" in capsys.readouterr().err


def test_a_kernel_that_was_not_called_has_its_share_of_the_peak_and_its_edits() -> None:
    @tilelang.jit(out_idx=[1], target="npuir")
    def exponential(rows: int, tile_rows: int) -> Any:
        @T.prim_func
        def kernel(A: T.Tensor((rows, 256), "float16"), B: T.Tensor((rows, 256), "float16")):
            with T.Kernel(T.ceildiv(rows, tile_rows), is_npu=True) as (block, _):
                a = T.alloc_ub((tile_rows, 256), "float16")
                T.copy(A[block * tile_rows, 0], a)
                T.vexp(a, a)
                T.copy(a, B[block * tile_rows, 0])

        return kernel

    told = exponential(256, 8).explain()
    (rate,) = told.rates
    assert re.fullmatch(r"\d+ GB/s, \d+ % of what L2 gives; bound by .+", rate)
    text = str(told)
    assert f"\ntime\n  {told.time}\n  {rate}\n" in text
    assert "\nedits that win most, tried\n" in text
    assert told.tried


def test_a_refusal_that_asks_for_smaller_tiles_says_that_larger_ones_win() -> None:
    refusal = Remark("hoist-loads", REFUSED, "hoist-loads", None, "UB has no room", "shrink the tiles", change=Smaller((None,)))
    section = {"refused": ("hoist-loads  no line: UB has no room", "  to have it: shrink the tiles")}
    larger = TriedEdit("tile=128 in place of 64", None, 10.0, 8.0, growth=2.0)
    for edits, expected in (((larger,), True), ((replace(larger, growth=0.5),), False), ((), False)):
        page = Explanation("main", "Ascend910B2", section, (refusal,))
        vars(page)["_trials"] = Trials(edits, "")
        assert ("larger tiles win in this kernel instead: tile=128 in place of 64 (-20%)" in str(page)) is expected
