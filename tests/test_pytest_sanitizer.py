"""The sanitizer's options in a separate pytest, without and with workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TESTS = '''
import numpy as np, pytest
import tilelang_npu as tilelang
import tilelang_npu.language as T


def kernel(sync, name):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_ub((64,), "float32")
            T.copy(A, a)
            T.copy(a, B)  # MARK
    return tilelang.compile(main, target="ascendc", pass_configs={"tl.ascend_auto_sync": sync})


@pytest.fixture
def made():
    a = np.ones((2, 64), np.float32)
    kernel(False, "made")(*a)
    return a


def test_right():
    kernel(True, "right")(*np.ones((2, 64), np.float32))


def test_races():
    a = np.zeros((2, 64), np.float32)
    kernel(False, "races")(*a)
    assert (a[0] == a[1]).all()


def test_races_and_fails():
    kernel(False, "fails")(*np.zeros((2, 64), np.float32))
    assert False, "its own reason"


def test_races_in_a_fixture(made):
    pass
'''
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path, root: Path) -> Run:
    (tmp_path / "test_kernels.py").write_text(TESTS)

    def call(*options: str, plugin: str = "tilelang_npu.pytest_sanitizer") -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")]))
        words = ["-m", "pytest", "-q", "-rA", "-p", plugin, "-p", "no:cacheprovider", *options]
        env = {**os.environ, "PYTHONPATH": path, "TILELANG_DISABLE_CACHE": "1"}
        return subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    return call


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    words = (line.split() for line in done.stdout.splitlines())
    return {line[1].split("::")[1]: line[0] for line in words if len(line) > 1 and "::" in line[1]}


def test_without_the_option_nothing_happens(run: Run) -> None:
    assert outcomes(run()) == {"test_right": "PASSED", "test_races": "PASSED", "test_races_and_fails": "FAILED",
                               "test_races_in_a_fixture": "PASSED"}


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "workers"])
def test_hazards_fail_tests(run: Run, options: tuple[str, ...], tmp_path: Path) -> None:
    done = run("--tilelang-sanitize", "--tilelang-report", "r.sarif", *options)
    assert outcomes(done) == {"test_right": "PASSED", "test_races": "FAILED", "test_races_and_fails": "FAILED",
                              "test_races_in_a_fixture": "ERROR"}
    assert done.stdout.count("race[S201]: UB bytes 0..255 of a") >= 3
    assert "its own reason" in done.stdout
    (result,) = json.loads((tmp_path / "r.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "S201"


def test_allowances(run: Run, tmp_path: Path) -> None:
    tests = tmp_path / "test_kernels.py"
    line = 1 + TESTS[:TESTS.index("# MARK")].count("\n")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\ntilelang_allow =\n    S201:test_kernels.py:{line}=the reader is patient\n")
    done = run("--tilelang-sanitize")
    assert set(outcomes(done).values()) == {"PASSED", "FAILED"}
    assert "allowed[S201]" in done.stdout and "the reader is patient" in done.stdout and "T415" not in done.stdout
    tests.write_text(TESTS.replace("# MARK", "# tilelang: allow S201 -- a comment").replace("assert False", "assert True"))
    done = run("--tilelang-sanitize", "-n", "2")
    assert done.returncode == 1 and "error[T415]" in done.stdout  # now the option lets nothing pass
    assert "FAILED" not in outcomes(done).values()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    assert run("--tilelang-sanitize", "-k", "test_right", "--tilelang-allow", "S203:x.py:1=other tests").returncode == 0


def test_options_that_cannot_be_followed(run: Run) -> None:
    for words, report in ((("--tilelang-report", "r.json"), "have no effect without"),
                        (("--tilelang-sanitize", "--tilelang-allow", "S201:f:3"), "has no reason")):
        done = run(*words)
        assert done.returncode == 4 and report in done.stderr


def test_the_plugin_for_suites_has_the_options_too(run: Run) -> None:
    assert outcomes(run("--tilelang-sanitize", plugin="tilelang_npu.pytest_plugin"))["test_races"] == "FAILED"


def test_it_needs_no_workers(run: Run) -> None:
    done = run("--tilelang-sanitize", "-p", "no:xdist", "-k", "test_right or test_races")
    assert "INTERNALERROR" not in done.stdout + done.stderr
    assert outcomes(done)["test_right"] == "PASSED"
    assert outcomes(done)["test_races"] == "FAILED"
