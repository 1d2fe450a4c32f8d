"""Times compared with a baseline, and chips as a fixture, in a separate pytest."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

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


def test_the_chips_are_those_that_are_asked_for_and_what_is_new_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tilelang_times.json").write_text("{}")
    done = run("--tilelang-times", "--tilelang-chip", "Ascend910B4", "-k", "test_chips")
    assert "1 passed" in done.stdout
    assert "not in tilelang_times.json: test_it.py::test_chips[Ascend910B4] work(float32 64) on Ascend910B4: " in done.stdout
