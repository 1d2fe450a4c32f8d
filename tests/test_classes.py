"""The classes of kernels reach at least the share of the roof in the docs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def classes(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    for folder in ("benchmarks", "examples"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    yield importlib.import_module("classes")
    sys.modules.pop("classes")


@pytest.mark.parametrize(("example", "rows", "least"), [
    ("gemm", 4096, 0.74), ("persistent_gemm", 4096, 0.81), ("softmax", 4096, 0.93), ("softmax", 32768, 0.98),
    ("rms_norm", 4096, 0.67), ("rms_norm", 32768, 0.97)])
def test_a_class_reaches_its_share(classes: ModuleType, example: str, rows: int, least: float) -> None:
    case = next(case for case in classes.CASES if (case.example, case.shape[0]) == (example, rows))
    assert classes.measure(case).share >= least


def test_attention_over_long_sequences_reaches_its_share(classes: ModuleType) -> None:
    """Four heads of 6144 queries: as many tiles for each core as heads. The full size reaches 60 %, and this one takes a
    second."""
    whole = next(case for case in classes.CASES if case.example == "multi_head_attention")
    assert whole.shape == (32, 8192, 8192)
    measured = classes.measure(replace(whole, shape=(4, 6144, 8192), products=4 * 4 * 6144 * 8192 * 128))
    assert measured.share >= 0.595


def test_the_table_in_the_docs_has_every_case(classes: ModuleType) -> None:
    lines = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8").splitlines()
    cells = [tuple(cell.strip() for cell in line.split("|")[1:3]) for line in lines if line.startswith("| ")]
    shown = [cell for cell in cells if cell[0].removesuffix(".py") in {case.example for case in classes.CASES}
             and cell[0].endswith(".py")]
    assert shown == [(f"{case.example}.py", " x ".join(map(str, case.shape))) for case in classes.CASES]
