"""Random kernels have the same results compiled and interpreted, and no missing reports: ``benchmarks/fuzz.py``.

``TILELANG_FUZZ_PROGRAMS=20000 pytest tests/fuzz/test_programs.py`` sets the number of cases; ``TILELANG_FUZZ_SEED`` is the
first seed.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = int(os.environ.get("TILELANG_FUZZ_PROGRAMS", "25"))
SEED = int(os.environ.get("TILELANG_FUZZ_SEED", "0"))


@pytest.fixture
def fuzz(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("fuzz_of_programs", root / "benchmarks" / "fuzz.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "1")
    spec.loader.exec_module(module)
    return module


def test_random_kernels(fuzz: Any, tmp_path: Path) -> None:
    outcomes, findings = fuzz.campaign(float("inf"), SEED, PROGRAMS, tmp_path / "found")
    assert findings == []
    assert outcomes["judged"] > PROGRAMS  # each on the usual chip, and on another or without a pass


def test_a_wrong_result_is_found_and_made_small(fuzz: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilelang_npu.interpreter import vectors

    def off_by_one(kind: Any, a: Any, b: Any) -> Any:
        return (a + b + 1).astype(a.dtype)

    monkeypatch.setitem(vectors.ELEMENTWISE, "add", off_by_one)
    _, ((seed, finding),) = fuzz.campaign(float("inf"), 30, 200, tmp_path, shrink=20.0, until_found=True)
    script = tmp_path / f"seed-{seed}.py"
    body = script.read_text(encoding="utf-8").split("@T.prim_func")[1].split("def inputs")[0]
    assert finding.kind == "values"
    assert "add(" in body or " + " in body
    assert len(body.splitlines()) < 24
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("main: compiled and interpreted are equal")  # there the interpreter is right


@pytest.mark.parametrize(("code", "kind"), [("T130", "silent"), ("T101", "refused")])
def test_an_error_of_the_interpreter_alone_is_found(fuzz: Any, monkeypatch: pytest.MonkeyPatch, code: str, kind: str) -> None:
    from tilelang_npu.errors import TileError
    from tilelang_npu.interpreter import vectors

    def refused(kind: Any, a: Any, b: Any) -> Any:
        raise TileError("no such sum", code=code)

    monkeypatch.setitem(vectors.ELEMENTWISE, "add", refused)
    _, ((_, finding),) = fuzz.campaign(float("inf"), 0, 200, until_found=True)  # the first program that adds
    assert (finding.kind, finding.key) == (kind, code)
