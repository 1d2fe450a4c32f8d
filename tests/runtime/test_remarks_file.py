"""Refusals as notes for editors, and all remarks as data: the same as in ``explain()``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from runtime.test_findings_file import check
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.reports.remarks_file import write_remarks

pytestmark = pytest.mark.filterwarnings("ignore:T149")  # of the order of its points


def shifted() -> Any:
    @T.prim_func
    def main(X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 64), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(8, 56):
                x[i, j + 8] = x[i, j] + 1.0  # refused
            T.copy(x, Y)

    return tilelang.compile(main, target="npuir").explain()


def test_an_editor_shows_a_refusal_at_its_line_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    write_remarks(str(tmp_path / "page.sarif"), [shifted(), shifted()])
    log = json.loads((tmp_path / "page.sarif").read_text())
    check("log", log)
    (run,) = log["runs"]
    (note,) = run["results"]
    assert (note["ruleId"], note["level"]) == ("vectorise-parallel", "note")
    assert run["tool"]["driver"]["rules"][note["ruleIndex"]]["id"] == note["ruleId"]
    assert note["message"]["text"] == ("a point reads an element that another point writes\n"
                                       "to have it: T.copy the buffer to a second one before the loop, and read that")
    place = note["locations"][0]["physicalLocation"]
    loop = Path(__file__).read_text().splitlines().index("                x[i, j + 8] = x[i, j] + 1.0  # refused")
    assert place["artifactLocation"] == {"uri": Path(__file__).name, "uriBaseId": "SRCROOT"}
    assert place["region"]["startLine"] == loop


def test_all_remarks_are_data(tmp_path: Path) -> None:
    page = shifted()
    write_remarks(str(tmp_path / "page.json"), [page])
    (kernel,) = json.loads((tmp_path / "page.json").read_text())["kernels"]
    assert (kernel["kernel"], kernel["chip"]) == ("main", page.chip)
    assert [(one["maker"], one.get("kind", "made"), one.get("text", "")) for one in kernel["remarks"]] == [
        (one.maker, one.kind, one.text) for one in page.remarks]
    (points,) = (one["facts"] for one in kernel["remarks"] if one.get("facts", {}).get("is") == "Points")
    assert points["extents"] == [8, 56] and points["ops"] == []


def test_another_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TileError, match="is not a name for a report file") as caught:
        write_remarks(str(tmp_path / "page.txt"), [shifted()])
    assert caught.value.code == "T416"


def test_at_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tilelang_npu.cli import main

    example = Path(__file__).resolve().parents[2] / "examples" / "softmax.py"
    assert main(["compile", str(example), "--explain", "-o", str(tmp_path / "page.json")]) == 0
    assert "softmax" in {kernel["kernel"] for kernel in json.loads((tmp_path / "page.json").read_text())["kernels"]}
    assert "softmax on" not in capsys.readouterr().out
