"""Times compared with a baseline, and chips as a fixture, in a separate pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

TESTS = '''
import numpy as np
import tilelang_npu as tilelang
import tilelang_npu.language as T


def kernel(steps):
    @T.prim_func
    def work(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_shared((64,), "float32")
            T.copy(A, a)
            for _ in T.serial(steps):
                T.vexp(a, a)
            T.copy(a, A)
    return tilelang.compile(work, target="npuir")


def test_time():
    kernel(STEPS)(np.zeros(64, np.float32))


def test_chips(npu_chip):
    made = kernel(1)
    assert made.chip.name == npu_chip
    made(np.zeros(64, np.float32))


def test_no_kernel():
    pass
'''


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the tests, with ``STEPS`` steps."""
    def made(*options: str, steps: int = 4) -> Done:
        (tmp_path / "test_it.py").write_text(TESTS.replace("STEPS", str(steps)))
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        sys.modules.pop("test_it", None)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        code = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "tilelang_npu.pytest_times", *options])
        return Done(int(code), *capsys.readouterr())
    return made


def test_a_kernel_that_gets_slower_than_its_baseline_fails(run: Run, tmp_path: Path) -> None:
    assert "does not exist: write it with --tilelang-times-update" in (missing := run("--tilelang-times")).stderr
    assert missing.returncode == 4
    assert run("--tilelang-times-update").returncode == 0
    known = json.loads((tmp_path / "tilelang_times.json").read_text())
    assert len(known) == 4  # a test, and one for each of three chips; tests without kernels are left out
    assert [*known["test_it.py::test_time"]] == ["work(float32 64) on Ascend910B2"]
    same = run("--tilelang-times")
    assert (same.returncode, "tilelang_npu times" in same.stdout) == (0, False)
    slower = run("--tilelang-times", "-k", "test_time", steps=400)
    assert slower.returncode == 1
    assert "slower than the baseline\nwork(float32 64) on Ascend910B2: " in slower.stdout
    faster = run("--tilelang-times", "-o", "tilelang_times_tolerance=0", "-k", "test_time", steps=1)
    assert (faster.returncode, "faster: work(float32 64)" in faster.stdout) == (0, True)
    within = run("--tilelang-times", "-o", "tilelang_times_tolerance=100000", "-k", "test_time", steps=400)
    assert within.returncode == 0


def test_an_update_keeps_the_times_of_tests_that_fail(run: Run, tmp_path: Path) -> None:
    """A test fails by its own assertion or by another plug-in, such as that of budgets, after its kernel has run."""
    baseline = tmp_path / "tilelang_times.json"
    baseline.write_text(json.dumps({"test_it.py::test_time": {"work(float32 64) on Ascend910B2": 1.0}}))
    (tmp_path / "conftest.py").write_text(
        "import pytest\n\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_call(item):\n    yield\n"
        "    assert item.name != 'test_time' and '[Ascend910_9391]' not in item.name\n")
    assert run("--tilelang-times-update").returncode == 1
    known = json.loads(baseline.read_text())
    assert known.pop("test_it.py::test_time") == {"work(float32 64) on Ascend910B2": 1.0}
    assert sorted(known) == ["test_it.py::test_chips[Ascend910B2]", "test_it.py::test_chips[Ascend910_95]"]
    (tmp_path / "conftest.py").unlink()


def test_an_update_in_which_no_test_runs_writes_no_file(run: Run, tmp_path: Path) -> None:
    """An empty baseline would pass every later comparison."""
    assert run("--tilelang-times-update", "-k", "nothing_of_this_name").returncode == 5
    assert not (tmp_path / "tilelang_times.json").exists()


def test_the_requested_chips_are_compared_and_new_kernels_are_listed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tilelang_times.json").write_text("{}")
    done = run("--tilelang-times", "--tilelang-chip", "Ascend910B4", "-k", "test_chips")
    assert "1 passed" in done.stdout
    assert "not in tilelang_times.json: test_it.py::test_chips[Ascend910B4] work(float32 64) on Ascend910B4: " in done.stdout


@pytest.fixture
def workers(tmp_path: Path, root: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the tests in two workers of pytest-xdist, which need a process of their own."""
    def made(*options: str, steps: int = 4) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_it.py").write_text(TESTS.replace("STEPS", str(steps)))
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        path = os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")]))
        words = ["-m", "pytest", "-q", "-n", "2", "-p", "tilelang_npu.pytest_times", "-p", "no:cacheprovider", *options]
        env = {**os.environ, "PYTHONPATH": path, "TILELANG_DISABLE_CACHE": "1"}
        return subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    return made


def test_lists_and_files_are_complete_with_workers(run: Run, workers: Callable[..., subprocess.CompletedProcess[str]],
                                                   tmp_path: Path) -> None:
    baseline = tmp_path / "tilelang_times.json"
    assert run("--tilelang-times-update").returncode == 0
    alone = baseline.read_text()
    baseline.write_text(json.dumps({"test_it.py::test_no_kernel": {"lost(float32 64) on Ascend910B2": 2.0},
                                    "test_it.py::test_other_file": {"work": 1.0}}))
    assert workers("--tilelang-times-update").returncode == 0
    known = json.loads(baseline.read_text())
    assert known.pop("test_it.py::test_other_file") == {"work": 1.0}  # it did not run
    assert known == json.loads(alone)
    times = known["test_it.py::test_time"]
    known["test_it.py::test_time"] = {kernel: 1000 * us for kernel, us in times.items()}
    known["test_it.py::test_no_kernel"] = {"lost(float32 64) on Ascend910B2": 2.0}
    chips = [test for test in known if "test_chips" in test]
    for test in chips:
        del known[test]
    baseline.write_text(json.dumps(known))
    done = workers("--tilelang-times", "--tilelang-times-json", "present.json")
    assert done.returncode == 0, done.stdout
    assert [line[:line.index(" work")] for line in done.stdout.splitlines() if line.startswith("not in tilelang_times.json: ")
            ] == [f"not in tilelang_times.json: {test}" for test in sorted(chips)]
    assert "only in tilelang_times.json: test_it.py::test_no_kernel lost(float32 64) on Ascend910B2" in done.stdout
    assert "faster: work(float32 64) on Ascend910B2: " in done.stdout
    assert (tmp_path / "present.json").read_text() == alone


def test_the_tolerance_of_the_command_line_comes_first(run: Run) -> None:
    assert run("--tilelang-times-update").returncode == 0
    words = ("--tilelang-times", "-o", "tilelang_times_tolerance=0", "-k", "test_time")
    assert run(*words, steps=400).returncode == 1
    assert run(*words, "--tilelang-times-tolerance", "100000", steps=400).returncode == 0
    for wrong in ("-1", "much", "nan"):
        done = run("--tilelang-times", "--tilelang-times-tolerance", wrong)
        assert (done.returncode, f"the tolerance '{wrong}' is no number of percent" in done.stderr) == (4, True)


def test_a_file_that_holds_no_times(run: Run, tmp_path: Path) -> None:
    for text, said in (("[]", "is no file of times"), ("{", "is no JSON"), ('{"a": {"b": 0}}', "is no file of times (a)")):
        (tmp_path / "tilelang_times.json").write_text(text)
        done = run("--tilelang-times")
        assert (done.returncode, said in done.stderr) == (4, True), done.stderr


def test_a_comparison_runs_no_tests(run: Run, tmp_path: Path) -> None:
    old, new, same = (tmp_path / name for name in ("old.json", "new.json", "same.json"))
    old.write_text('{"t.py::a": {"k": 10.0}}')
    new.write_text('{"t.py::a": {"k": 10.5}}')
    same.write_text('{"t.py::a": {"k": 10.1}}')
    reports = [word for ending in ("md", "json", "html") for word in ("--tilelang-times-report", f"out/r.{ending}")]
    slower = run("--tilelang-times-compare", "old.json", "new.json", *reports)
    assert (slower.returncode, slower.stderr) == (1, "")
    assert slower.stdout == (tmp_path / "out" / "r.md").read_text()
    assert "| slower | `t.py::a` | `k` | 10.000 | 10.500 | +5.0% |" in slower.stdout
    assert json.loads((tmp_path / "out" / "r.json").read_text())["kernels"][0]["verdict"] == "slower"
    assert (tmp_path / "out" / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert run("--tilelang-times-compare", "old.json", "same.json").returncode == 0
    assert run("--tilelang-times-compare", "old.json", "same.json", "--tilelang-times-tolerance", "0.5").returncode == 1


@pytest.mark.parametrize(("words", "said"), [
    (("--tilelang-times-compare", "no.json", "no.json"), "no.json: No such file or directory"),
    (("--tilelang-times-compare", "pytest.ini", "pytest.ini"), "pytest.ini is no JSON"),
    (("--tilelang-times-compare", "no.json", "no.json", "--tilelang-times-report", "r.txt"),
     "r.txt is not a name for a comparison of times: choose one that ends in .md, .json, .html"),
    (("--tilelang-times-report", "r.md"), "--tilelang-times-report has no effect without --tilelang-times-compare"),
])
def test_a_comparison_that_cannot_be_made(words: tuple[str, ...], said: str, run: Run) -> None:
    done = run(*words)
    assert (done.returncode, said in done.stderr) == (4, True), done.stderr


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_junit_file_has_the_figures_of_kernels(options: tuple[str, ...], run: Run, tmp_path: Path,
                                                 workers: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    (workers if options else run)("--junitxml", "report.xml", "-k", "test_time or test_no_kernel")
    found = {case.get("name"): {one.get("name"): one.get("value") for one in case.iter("property")}
             for case in ElementTree.parse(tmp_path / "report.xml").iter("testcase")}
    assert found["test_no_kernel"] == {}
    label = "work(float32 64) on Ascend910B2"
    assert found["test_time"].keys() == {f"npu_us[{label}]", f"npu_bound_by[{label}]", f"npu_bytes_UB[{label}]"}
    assert float(found["test_time"][f"npu_us[{label}]"]) > 1
    assert found["test_time"][f"npu_bound_by[{label}]"] == "latency (MTE3)"
    assert found["test_time"][f"npu_bytes_UB[{label}]"] == "256"
