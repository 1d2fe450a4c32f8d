"""The error of modelled times by class of kernels, from ``accuracy.json``.

``python benchmarks/calibrate.py --write`` writes the file: each published measurement with the modelled time of the same
kernel, and by class the median error, with the constants of this package and with constants fitted without a measurement's own
source.
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
    """The error of the modelled times of a class of kernels.

    Attributes:
        kind: the class.
        rows: number of measured kernels.
        error: the larger of ``left_out`` and ``fitted``.
        left_out: the median error as a share of the measured time, with constants fitted without a row's source.
        fitted: the median error with the constants of this package.
        ratio: the median of modelled to measured time.
        worst, worst_ratio: the row with the largest error, and its ratio.
        families: the families of chips with the measured cores.
        sources: the sources of the measurements.
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
    """The errors of all classes, by class."""
    table: dict[str, Any] = json.loads((files("tilelang_npu.target") / "accuracy.json").read_text(encoding="utf-8"))["classes"]
    return {kind: Accuracy(**{**row, "kind": kind, "families": tuple(row["families"]), "sources": tuple(row["sources"])})
            for kind, row in table.items()}


def error_of(kind: str, chip: Chip) -> float | None:
    """The error of modelled times of a class on a chip; None where no measurement applies."""
    found = accuracies().get(kind)
    return found.error if found is not None and chip.family in found.families and not chip.file else None
