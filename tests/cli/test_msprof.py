"""``tilelang-npu msprof``: modelled times in the files of the vendor's profiler, and the program ``msprof`` for scripts."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tilelang_npu.cli import main

SCRIPT = """
import sys
import numpy as np
import tilelang
import tilelang.language as T


def copy(name, n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(n // 64) as block:
            a = T.alloc_shared((64,), "float32")
            T.copy(A[block * 64], a)
            T.copy(a, B[block * 64])
    main.function.__name__ = name
    return tilelang.compile(main, out_idx=[1])


print("arguments", sys.argv[1:])
small, large = copy("small", 64), copy("large", 6400)
for _ in range(2):
    small(np.ones(64, np.float32))
    large(np.ones(6400, np.float32))
print("TIMES", small.last_launch.time_us, large.last_launch.time_us)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def rows(folder: Path, pattern: str) -> list[dict[str, str]]:
    return [row for path in sorted(folder.rglob(pattern)) for row in csv.DictReader(path.read_text().splitlines())]


def times(text: str) -> list[float]:
    return [float(each) for each in text.partition("TIMES ")[2].split()[:2]]


def test_one_launch_has_one_file(script: Path, tmp_path: Path, capfd: Any) -> None:
    assert main(["msprof", "op", f"--output={tmp_path / 'out'}", "python", str(script), "--size", "3"]) == 0
    shown = capfd.readouterr().out
    (row,) = rows(tmp_path / "out", "OPPROF_*/OpBasicInfo.csv")
    assert "arguments ['--size', '3']" in shown
    assert (row["Op Name"], row["Op Type"], row["Block Dim"]) == ("small", "AI_VECTOR_CORE", "1")
    assert float(row["Task Duration(us)"]) == pytest.approx(times(shown)[0], rel=1e-5)


@pytest.mark.parametrize(("name", "count", "expected"), [
    ("large", 5, ["large"] * 2), ("large", 1, ["large"]), ("l*|small", 3, ["large", "small", "small"]),
    ("small_kernel", 5, ["small"] * 2)])
def test_launches_are_chosen_by_name_and_number(name: str, count: int, expected: list[str], script: Path, tmp_path: Path,
                                                capfd: Any) -> None:
    assert main(["msprof", "op", f"--kernel-name={name}", f"--launch-count={count}", "--warm-up", "5", "--aic-metrics=Roofline",
                 "--dump=off", f"--output={tmp_path / 'out'}", sys.executable, str(script)]) == 0
    found = rows(tmp_path / "out", "OpBasicInfo.csv")
    assert [row["Op Name"] for row in found] == expected
    shown = capfd.readouterr()
    assert "no effect on modelled times: --warm-up, --aic-metrics, --dump" in shown.err
    last = dict(zip(("small", "large"), times(shown.out), strict=True))
    assert {row["Op Name"]: float(row["Task Duration(us)"]) for row in found} == pytest.approx(
        {name: last[name] for name in expected}, rel=1e-5)


@pytest.mark.parametrize("form", ["words", "application"])
def test_a_summary_has_a_row_for_each_launch(form: str, script: Path, tmp_path: Path, capfd: Any) -> None:
    words = ["python3", str(script)] if form == "words" else [f"--application=python {script}"]
    assert main(["msprof", f"--output={tmp_path / 'out'}", *words]) == 0
    found = rows(tmp_path / "out", "PROF_*/mindstudio_profiler_output/op_summary_*.csv")
    assert [row["Op Name"] for row in found] == ["small", "large"] * 2
    assert all(float(row["Task Duration(us)"]) > 0 for row in found)
    starts = [float(row["Task Start Time(us)"]) for row in found]
    assert starts == sorted(starts)
    assert "modelled times are in" in capfd.readouterr().out


@pytest.mark.parametrize(("words", "message"), [
    ([], "the command line has none"), (["op", "--output=x"], "the command line has none"),
    (["python", "-m", "pytest"], "-m pytest"), (["op", "./a.out"], "./a.out"),
    (["op", "--launch-count=0", "python", "SCRIPT"], "--launch-count is 0"),
    (["op", "python", "nothing.py"], "nothing.py does not exist"),
    (["op", "--kernel-name=other", "python", "SCRIPT"], "no launched kernel has the name other"),
])
def test_wrong_requests_are_refused(words: list[str], message: str, script: Path, tmp_path: Path, capfd: Any,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["msprof", *(str(script) if word == "SCRIPT" else word for word in words)]) == 1
    assert message in capfd.readouterr().err
    assert not list(tmp_path.glob("*PROF*"))


def test_the_exit_code_is_that_of_the_script(tmp_path: Path) -> None:
    path = tmp_path / "ends.py"
    path.write_text("raise SystemExit(7)")
    assert main(["msprof", "op", "python", str(path)]) == 7


@pytest.mark.skipif(os.name != "posix", reason="the program is a shell script")
def test_scripts_find_the_program(script: Path, tmp_path: Path) -> None:
    other = tmp_path / "profiles.py"
    other.write_text(f"""
import shutil, subprocess, sys
import tilelang
found = shutil.which("msprof")
command = [found, "op", "--output={tmp_path / 'out'}", sys.executable, {str(script)!r}]
done = subprocess.run(command, capture_output=True, text=True)
print(done.returncode, done.stderr)
""")
    done = subprocess.run([sys.executable, "-m", "tilelang_npu", "run", str(other)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("0 "), done.stdout
    assert [row["Op Name"] for row in rows(tmp_path / "out", "OpBasicInfo.csv")] == ["small"]
