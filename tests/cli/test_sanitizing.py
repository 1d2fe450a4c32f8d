"""The common options of `run` and `sim`: reports, allowances, the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

RACE = """
import numpy as np, tilelang, tilelang.language as T

@T.prim_func
def racing(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, is_npu=True) as (block, half):
        a = T.alloc_ub((64,), "float32")
        T.copy(A, a)
        T.copy(a, B)

tilelang.compile(racing, out_idx=[-1], target="ascendc")(np.ones(64, np.float32))
"""


@pytest.fixture
def race(tmp_path: Path) -> Path:
    path = tmp_path / "race.py"
    path.write_text(RACE)
    return path


def results(path: Path) -> list[dict]:
    return json.loads(path.read_text())["runs"][0]["results"]


def test_a_report(tool, race: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.sarif"
    assert tool("run", race, "--sanitize", "--report", report).code == 1
    (result,) = results(report)
    assert (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]["startLine"]) == ("S201", 9)
    assert result["properties"]["kernel"] == "racing"


def test_an_allowance(tool, race: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.sarif"
    done = tool("run", race, "--sanitize", f"--report={report}", "--allow", "S201:race.py:9=the reader is patient")
    assert done.code == 0, done.err
    assert f"allowed[S201]: {race}:9:" in done.out and "the reader is patient" in done.out
    assert [one["justification"] for one in results(report)[0]["suppressions"]] == ["the reader is patient"]


def test_a_comment(tool, race: Path, tmp_path: Path) -> None:
    race.write_text(RACE.replace("T.copy(a, B)", "T.copy(a, B)  # tilelang: allow S201 -- the reader is patient"))
    report = tmp_path / "r.json"
    assert tool("run", race, "--sanitize", "--report", report).code == 0
    assert json.loads(report.read_text())["findings"][0]["allowed"] == {"reason": "the reader is patient", "where": "source"}
    assert tool("run", race).code == 0


def test_what_lets_nothing_pass_fails(tool, race: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    allow = ("--allow", "S201:race.py:9=yes", "--allow", "S203:race.py:8=no")
    done = tool("run", race, "--sanitize", "--report", report, *allow)
    assert done.code == 1
    assert "error[T415]" in done.err and "S203 at race.py:8" in done.err
    made = json.loads(report.read_text())
    assert [error["code"] for error in made["errors"]] == ["T415"] and made["findings"][0]["allowed"]


@pytest.mark.parametrize(("words", "code"), [
    (("--report", "r.json"), "T417"), (("--allow", "S201:race.py:9=x"), "T417"), (("--sanitize", "--report", "r.txt"), "T416"),
    (("--sanitize", "--allow", "S201:race.py:9"), "T414")])
def test_options_that_cannot_be_followed(tool, race: Path, words: tuple[str, ...], code: str) -> None:
    done = tool("run", race, *words)
    assert (done.code, done.out) == (1, "") and f"error[{code}]" in done.err


def test_what_ended_the_script_is_in_the_report(tool, race: Path, tmp_path: Path) -> None:
    race.write_text(RACE.replace("T.copy(a, B)", "T.wait_flag('mte2', 'v', 0)"))
    report = tmp_path / "r.json"
    done = tool("run", race, "--sanitize", "--report", report, "--allow", "S203:race.py:8=not reached")
    assert done.code == 1 and "hang[S302]" in done.err and "T415" not in done.err
    assert [error["code"] for error in json.loads(report.read_text())["errors"]] == ["S302"]


def test_sim_does_the_same(tool, race: Path, tmp_path: Path) -> None:
    text, report = tmp_path / "racing.mlir", tmp_path / "r.sarif"
    assert tool("compile", f"{race}:racing", "-o", text).code == 0
    done = tool("sim", text, "--blocks", 1, "--sanitize", "--report", report)
    assert done.code == 1 and "race[S201]" in done.out
    line = results(report)[0]["locations"][0]["physicalLocation"]["region"]["startLine"]
    lines = text.read_text().splitlines()
    assert "hivm.hir.store" in lines[line - 1]
    assert tool("sim", text, "--blocks", 1, "--sanitize", "--allow", f"S201:racing.mlir:{line}=patient").code == 0
    lines[line - 1] += "  // tilelang: allow S201 -- the reader is patient"
    text.write_text("\n".join(lines))
    assert tool("sim", text, "--blocks", 1, "--sanitize", "--report", report).code == 0
    assert results(report)[0]["suppressions"][0]["kind"] == "inSource"
    assert tool("sim", text, "--blocks", 1, "--report", report).code == 1
