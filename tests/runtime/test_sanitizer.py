"""``sanitize=True``, the variable, the attribute: findings are raised after the run, and only once."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.errors import SanitizerError, TileError, render
from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.runtime.checks.allowances import parse
from tilelang_npu.runtime.checks.sanitizer import Sanitizer, unallowed
from tilelang_npu.runtime.jit.recording import record
from tilelang_npu.runtime.settings import environment

N = 64
X = np.arange(N, dtype=np.float32)


def racing(settings: dict[str, Any]) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_ub((N,), "float32")
            T.copy(A, a)
            T.copy(a, B)

    return tilelang.compile(main, target="ascendc", **settings)


def is_raised(kernel: Any) -> bool:
    result = np.zeros_like(X)
    error = None
    try:
        kernel(X, result)
    except SanitizerError as caught:
        error = caught
    assert (result == X).all(), "the launch is over"
    assert kernel.last_launch is not None
    if error is None:
        return False
    assert [found.code for found in error.findings] == ["S201"] == [error.code]
    assert render(error) == str(error) == str(error.findings[0])
    assert error.location == error.findings[0].hazard.second.location
    return True


@pytest.mark.parametrize(("given", "variable", "raised"), [
    (None, "", False), (None, "1", True), (None, "off", False), (True, "", True), (True, "0", True), (False, "1", False)])
def test_who_asks_for_it(given: bool | None, variable: str, raised: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_SANITIZE", variable)
    assert is_raised(racing({} if given is None else {"sanitize": given})) == raised


def test_the_kernel_attribute_switches_the_sanitizer_on() -> None:
    kernel = racing({})
    assert not is_raised(kernel)
    kernel.sanitize = True
    assert is_raised(kernel)


def test_a_factory() -> None:
    @tilelang.jit(target="ascendc", out_idx=[-1], sanitize=True)
    def factory(n: int) -> Any:
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(1, is_npu=True) as (b, _):
                a = T.alloc_ub((n,), "float32")
                T.copy(A, a)
                T.copy(a, B)

        return main

    with pytest.raises(SanitizerError, match="MTE2 -> MTE3"):
        factory(N)(X)


def test_no_hazard_is_no_error() -> None:
    assert not is_raised(racing({"sanitize": True, "pass_configs": {"tl.ascend_auto_sync": True}}))


@pytest.mark.parametrize("value", ["yes", 2, "1"])
def test_another_value(value: object) -> None:
    with pytest.raises(TileError, match="neither True nor False") as caught:
        racing({"sanitize": value})
    assert caught.value.code == "T707"


def test_a_misspelt_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_NPU_SANITISE", "1")
    with pytest.raises(TileError, match="TILELANG_NPU_SANITISE") as caught:
        racing({})
    assert (caught.value.code, caught.value.help) == ("T721", "did you mean TILELANG_NPU_SANITIZE?")


@pytest.mark.parametrize(("value", "warns"), [("0", False), ("1", True)])
def test_variables_of_upstreams_profiler(monkeypatch: pytest.MonkeyPatch, value: str, warns: bool) -> None:
    environment._say_that_profiles_are_not_written.cache_clear()
    monkeypatch.setenv("TILELANG_NPU_PROFILE", value)
    monkeypatch.setenv("TILELANG_NPU_PROFILE_DIR", "somewhere")
    with warnings.catch_warnings(record=True) as report:
        warnings.simplefilter("always")
        kernel = racing({})
        racing({})
    said = [str(one.message) for one in report if "TILELANG_NPU_PROFILE has no effect" in str(one.message)]
    assert len(said) == warns
    assert kernel.kernel_name == kernel.name == "main"


def test_a_recorder_gets_the_findings_and_nothing_is_raised() -> None:
    session = Sanitizer()
    kernel = racing({"sanitize": True})
    with record(sanitizer=session) as done:
        assert not is_raised(kernel)
        assert not is_raised(kernel)
    assert [found.code for found in session.findings] == ["S201"]
    assert done.tallies[0].findings == session.findings
    assert (session.findings[0].kernel, session.findings[0].chip) == ("main", "Ascend910B2")
    assert is_raised(kernel)


def allowed() -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, is_npu=True) as (b, _):
            a = T.alloc_ub((N,), "float32")
            T.copy(A, a)
            # tilelang: allow S201 -- this is the subject of the test
            T.copy(a, B)
            T.copy(a, B)  # tilelang: allow S203 -- nothing of the kind is here

    return tilelang.compile(main, target="ascendc", sanitize=True)


def test_a_comment_lets_pass() -> None:
    session = Sanitizer([parse("S221:elsewhere.py:3=unused")])
    kernel = allowed()
    with record(sanitizer=session):
        assert not is_raised(kernel)
    passed = [found for found in session.findings if found.allowed]
    assert {(found.allowed, found.in_source) for found in passed} == {("this is the subject of the test", True)}
    assert [found.hazard.kind for found in unallowed(session.findings)] == ["RAW"]  # the following copy is another line
    idle = session.idle()
    assert [error.code for error in idle] == ["T415", "T415"]
    assert [error.location is None for error in idle] == [True, False]
    assert "S203" in idle[1].message


def test_an_option_lets_pass() -> None:
    line = racing.__code__.co_firstlineno + 6
    session = Sanitizer([parse(f"S201:{Path(__file__).name}:{line}=known")])
    with record(sanitizer=session):
        racing({})(X, np.zeros_like(X))
    assert unallowed(session.findings) == []
    assert [(found.allowed, found.in_source) for found in session.findings] == [("known", False)]
    assert session.idle() == []


SCRIPT = """
import numpy as np, tilelang_npu as tilelang, tilelang_npu.language as T

@T.prim_func
def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, is_npu=True) as (b, _):
        a = T.alloc_ub((64,), "float32")
        T.copy(A, a)
        {statement}

tilelang.compile(main, target="ascendc", pass_configs={{"tl.ascend_auto_sync": {sync}}})(*np.ones((2, 64), np.float32))
"""


@pytest.mark.parametrize(("statement", "sync", "code", "report"), [
    ("T.copy(a, B)", False, 1, "race[S201]"), ("T.copy(a, B)", True, 0, ""),
    ("T.copy(a, B)  # tilelang: allow S201 -- so be it", False, 0, ""),
    ("T.copy(a, B)  # tilelang: allow S201 -- so be it", True, 0, "an allowance of S201 has no effect"),
    ("T.copy(a, B)  # tilelang: allow S201", False, 1, "error[T414]")])
def test_a_script_of_its_own(statement: str, sync: bool, code: int, report: str, tmp_path: Path, root: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(statement=statement, sync=sync))
    env = {**os.environ, "TILELANG_NPU_SANITIZE": "1",
           "PYTHONPATH": os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")]))}
    done = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert report in done.stderr and (report or not done.stderr)


@pytest.mark.parametrize("comment", ["", "  # tilelang: allow S201 -- it is meant so"])
def test_a_script_is_asked_for_the_lines_of_a_kernel_where_it_allows_something(
        comment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(f"""\
import tilelang_npu.language as T

@T.prim_func
def main(A: T.Tensor(({N},), "float32"), B: T.Tensor(({N},), "float32")):
    with T.Kernel(1, is_npu=True) as (b, _):
        a = T.alloc_ub(({N},), "float32")
        T.copy(A, a)
        T.copy(a, B){comment}
""")
    names: dict[str, Any] = {"__name__": "kernel"}
    exec(compile(file.read_text(), str(file), "exec", dont_inherit=True), names)
    asked: list[object] = []
    lines = PrimFunc.lines.fget
    monkeypatch.setattr(PrimFunc, "lines", property(lambda func: (asked.append(func), lines(func))[1]))
    kernel = tilelang.compile(names["main"], target="ascendc")
    del asked[:]
    assert is_raised_by(Sanitizer(), kernel) == (not comment)
    assert bool(asked) == bool(comment)


def is_raised_by(session: Sanitizer, kernel: Any) -> bool:
    kernel(X, np.zeros_like(X))
    return bool(unallowed(session.judge_all(kernel.last_launch, kernel.prim_func)))
