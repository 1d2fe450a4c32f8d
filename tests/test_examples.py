"""Every example is a script that checks itself; the command line runs it and finds no hazard. Nor does it in users' kernels.

interpreter/test_examples.py runs the scripts without the command line.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tilelang_npu.cli import main

HERE = Path(__file__).resolve().parent
FILES = sorted((HERE.parent / "examples").glob("*.py"))
USERS = sorted((HERE / "frontend" / "kernels").glob("*.py"))
pytestmark = pytest.mark.shared


@pytest.fixture(autouse=True)
def _modules_in_one_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """An Expert version imports its inputs from the Developer version in the same folder, as a script does."""
    monkeypatch.syspath_prepend(FILES[0].parent)


@pytest.mark.parametrize("file", [*FILES, *USERS], ids=[file.stem for file in (*FILES, *USERS)])
def test_under_the_sanitizer(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["run", str(file), "--sanitize"])
    out = capsys.readouterr().out
    assert code == 0, out
    assert out.startswith("PASS\n\n")
    assert "modelled" in out
