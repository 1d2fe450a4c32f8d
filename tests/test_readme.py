"""README is right: its kernel runs, its output and its MLIR are those of the example."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilelang_npu.cli import main


def _blocks(root: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (root / "README.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def shown(root: Path, tmp_path: Path) -> Any:
    """The module that README's kernel makes."""
    file = tmp_path / "readme_kernel.py"
    file.write_text(_blocks(root, "python")[0])
    spec = importlib.util.spec_from_file_location("readme_kernel", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_kernel_runs(shown: Any) -> None:
    expected = shown.a.astype(np.float32) @ shown.b.astype(np.float32)
    np.testing.assert_allclose(shown.c.astype(np.float32), expected, rtol=2e-3, atol=2e-2)


def test_the_output_is_the_examples(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(root / "examples" / "gemm.py")]) == 0
    assert _blocks(root, "text")[0] in capsys.readouterr().out


def test_the_race_is_that_of_the_page_on_debugging(root: Path) -> None:
    """Which is run, and printed, by its own test."""
    assert _blocks(root, "text")[1] in (root / "docs" / "debugging.md").read_text(encoding="utf-8")


def test_it_is_one_page(root: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120 and len(text.split()) <= 900
