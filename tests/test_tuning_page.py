"""docs/tuning.md: its blocks run in order, and its commands print the output on the page."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tilelang_npu.cli import main


def _blocks(root: Path) -> list[tuple[str, str]]:
    return re.findall(r"```(\w+)\n(.*?)```", (root / "docs" / "tuning.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.filterwarnings("ignore")  # of Dask and Optuna
def test_the_code_runs(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    blocks = [text for language, text in _blocks(root) if language == "python"]
    assert len(blocks) == 4
    for number, text in enumerate(blocks):
        needs = "distributed" if "distributed" in text else "optuna" if "trials=" in text else None
        if needs is None or find_spec(needs) is not None:
            file = tmp_path / f"page{number}.py"
            file.write_text(text)
            exec(compile(text, str(file), "exec"), names)


def test_the_command_prints_the_output_on_the_page(root: Path, monkeypatch: pytest.MonkeyPatch,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(root)
    (_, command), (_, shown) = [block for block in _blocks(root) if block[0] in ("console", "text")]
    assert main(command.removeprefix("$ tilelang-npu ").split()) == 0
    assert _unnumbered(capsys.readouterr().out) == _unnumbered(shown)


def _unnumbered(text: str) -> str:
    """Without the figures, which follow the model."""
    return re.sub(r"[\d.]+", "#", re.sub(r" +", " ", text)).strip()
