"""The marker ``npu_budget`` in a pytest of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HEAD = '''
import threading
import numpy as np, pytest
import tilelang_npu as tilelang
import tilelang_npu.language as T


def kernel(steps, dtype="float32"):
    @T.prim_func
    def work(A: T.Tensor((64,), dtype)):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_shared((64,), dtype)
            T.copy(A, a)
            for _ in T.serial(steps):
                T.vexp(a, a)
            T.copy(a, A)
    return tilelang.compile(work, target="npuir")


def call(steps=4):
    kernel(steps)(np.zeros(64, np.float32))

'''
TESTS = HEAD + '''
@pytest.mark.npu_budget(us=1000, share=1e-9, memory={"UB": 256})
def test_within(): call()

@pytest.mark.npu_budget(us=0.5)
def test_us(): call()

@pytest.mark.npu_budget(share=0.9)
def test_share(): call()

@pytest.mark.npu_budget(memory={"UB": 255, "L1": 0})
def test_memory_of_ub(): call()

@pytest.mark.npu_budget(memory=255)
def test_memory(): call()

@pytest.mark.npu_budget(us=10)
def test_one_of_two_calls():
    call(1000), call(1)

@pytest.mark.npu_budget(us=0.5)
def test_a_thread():
    thread = threading.Thread(target=call)
    thread.start(), thread.join()

@pytest.mark.npu_budget(us=0.5)
class TestNearest:
    @pytest.mark.npu_budget(us=1000)
    def test_its_own(self): call()

    @pytest.mark.npu_budget(memory=256)
    def test_that_of_the_class(self): call()

@pytest.mark.npu_budget(us=0.5)
def test_fails_before():
    call()
    assert False, "its own reason"

@pytest.mark.npu_budget(us=0.5)
def test_no_kernel(): pass

def test_without(): call()
'''
FAILING = ["test_us", "test_share", "test_memory_of_ub", "test_memory", "test_one_of_two_calls", "test_a_thread",
           "test_that_of_the_class", "test_fails_before", "test_no_kernel"]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path, root: Path) -> Run:
    def call(tests: str, *options: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_it.py").write_text(tests)
        path = os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")]))
        words = ["-m", "pytest", "-q", "-rA", "--strict-markers", "-p", "tilelang_npu.pytest_plugin", "-p", "no:cacheprovider"]
        env = {**os.environ, "PYTHONPATH": path, "TILELANG_DISABLE_CACHE": "1"}
        return subprocess.run([sys.executable, *words, *options], cwd=tmp_path, env=env, capture_output=True, text=True,
                              check=False)

    return call


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_test_over_its_budget_fails(run: Run, options: tuple[str, ...]) -> None:
    done = run(TESTS, *options)
    words = (line.split() for line in done.stdout.splitlines() if "::" in line)
    found = {line[1].split("::")[-1]: line[0] for line in words if line[0] in ("PASSED", "FAILED", "ERROR")}
    assert sorted(name for name in found if found[name] != "PASSED") == sorted(FAILING)
    assert {name for name in found if found[name] == "PASSED"} == {"test_within", "test_its_own", "test_without"}
    label = r"work\(float32 64\) on Ascend910B2: "
    for said in (r"\d+\.\d{3} us, the limit is 0\.5 us", r"\d\.\d% of the attainable rate, the limit is 90\.0%",
                 r"256 bytes of UB, the limit is 255 bytes", r"256 bytes of on-chip memory, the limit is 255 bytes",
                 r"\d+\.\d{3} us, the limit is 10 us"):
        assert re.search(label + said, done.stdout), said
    assert "its own reason" in done.stdout and "of L1" not in done.stdout
    assert "npu_budget has nothing to compare: the test launched no kernel" in done.stdout


def test_interpreted_kernels_have_no_figures(run: Run) -> None:
    done = run(HEAD + "@pytest.mark.npu_budget(us=1e-3)\ndef test_it(): call()\n", "--tilelang-interpret")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("arguments", "said"), [
    ("2.0", "npu_budget takes its limits by name: us=, share=, memory="),
    ("", "npu_budget needs a limit: us=, share= or memory="),
    ("time=2", "npu_budget has no limit time; its limits are us, share and memory"),
    ("us=0", "npu_budget(us=0): the limit is a positive number of microseconds"),
    ("us='2'", "npu_budget(us='2'): the limit is a positive number of microseconds"),
    ("us=True", "npu_budget(us=True): the limit is a positive number of microseconds"),
    ("us=None", "npu_budget(us=None): the limit is a positive number of microseconds"),
    ("share=50", "npu_budget(share=50): the limit is a number above 0 and at most 1"),
    ("memory=1.5", "npu_budget(memory=1.5): the limit is a number of bytes, or a dict of such numbers by memory"),
    ("memory={}", "npu_budget(memory={}): the limit is a number of bytes, or a dict of such numbers by memory"),
    ("memory={'UP': 1}", "npu_budget(memory={'UP': 1}): there is no memory 'UP'; there are BT, FB, L0A, L0B, L0C, L1, UB"),
])
def test_wrong_arguments_are_errors_of_the_collection(arguments: str, said: str, tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_budget_arguments.py").write_text(
        f"import pytest\n@pytest.mark.npu_budget({arguments})\ndef test_it(): print('it ran')\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    sys.modules.pop("test_budget_arguments", None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    code = pytest.main(["-q", "-s", "-p", "no:cacheprovider", "-p", "tilelang_npu.pytest_budget"])
    printed = capsys.readouterr().out
    assert code == 2 and "ERROR collecting" in printed and "it ran" not in printed
    assert f"test_budget_arguments.py::test_it: {said}" in printed


def test_a_parameter_with_a_wrong_budget_is_named(run: Run) -> None:
    tests = HEAD + ("@pytest.mark.parametrize('n', [1, pytest.param(2, marks=pytest.mark.npu_budget(us=-1))])\n"
                    "def test_it(n): pass\n")
    done = run(tests, "-n", "2")
    assert done.returncode != 0 and "test_it.py::test_it[2]: npu_budget(us=-1)" in done.stdout
