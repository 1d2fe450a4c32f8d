"""How far modelled times are from measured ones, by class of kernels: ``accuracy.json``.

``python benchmarks/calibrate.py --write`` writes the file: each published measurement beside what is modelled of the same
kernel, and by class the median of the errors: with the constants as they are, and fitted without a measurement's own source.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from tilelang_npu.target.chip_data import Chip


@dataclass(frozen=True)
class Accuracy:
    """How well times of a class of kernels are modelled.

    Attributes:
        kind: the class.
        rows: measured kernels.
        error: the larger of the next two.
        left_out: the median of the errors, as shares of the measured time, each row's with constants fitted without its source.
        fitted: the same with the constants as they are.
        ratio: the median of modelled to measured time.
        worst, worst_ratio: the row with the largest error, and its ratio.
        families: of the chips that have the cores which were measured.
        sources: who measured.
    """

    kind: str
    rows: int
    error: float
    left_out: float
    fitted: float
    ratio: float
    worst: str
    worst_ratio: float
    families: tuple[str, ...]
    sources: tuple[str, ...]


@cache
def accuracies() -> dict[str, Accuracy]:
    """What is known, by class."""
    table: dict[str, Any] = json.loads((files("tilelang_npu.target") / "accuracy.json").read_text(encoding="utf-8"))["classes"]
    return {kind: Accuracy(**{**row, "kind": kind, "families": tuple(row["families"]), "sources": tuple(row["sources"])})
            for kind, row in table.items()}


def error_of(kind: str, chip: Chip) -> float | None:
    """The error of modelled times of a class on a chip; None where nothing was measured that it follows from."""
    found = accuracies().get(kind)
    return found.error if found is not None and chip.family in found.families and not chip.file else None
