"""Compiled examples and users' kernels have the interpreter's results; steps of ladders are tested in test_gallery.py."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tilelang_npu import compat

HERE = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((HERE.parent / "examples").glob("*.py"))
USERS = sorted((HERE / "frontend" / "kernels").glob("*.py"))
pytestmark = pytest.mark.shared


@pytest.mark.parametrize("file", [*EXAMPLES, *USERS], ids=lambda file: file.stem)
def test_every_call_is_equal_both_ways(file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(EXAMPLES[0].parent)  # an Expert version takes its inputs from the Developer version
    monkeypatch.setenv("TILELANG_NPU_AGAINST_INTERPRETER", "1")
    compat.install()
    runpy.run_path(str(file), run_name="__main__")
    if file in EXAMPLES:
        assert capsys.readouterr().out.splitlines()[-1] == "PASS"
