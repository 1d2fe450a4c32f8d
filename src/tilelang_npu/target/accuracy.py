"""The error of modelled times: how far they are from measured times, from the measurements in ``accuracy.json``.

``python benchmarks/calibrate.py --write`` writes that file. It has a row for each published measurement: the measured time, the
modelled time of the same kernel, and the model's error if all measurements of the same source are left out when the constants
of the model are fitted.

The error of a launch is the half-width of a conformal prediction interval: 80 % of the measured kernels that are like the
launch (of its class and size) are within the interval, and so the time of a further kernel like them is within it with a
probability of 80 % (split conformal prediction with groups; Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random
World*, 2005). The errors with a source left out are used, because kernels of one source resemble each other more than an unseen
kernel resembles them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import ceil
from typing import Any

from tilelang_npu.target.chip_data import Chip

COVERED = 0.8
"""The share of kernels that the prediction interval covers."""
LEVEL = 0.82
"""The quantile of the errors that is taken as half the width of the prediction interval. Kernels of one source are more alike
than those of different ones: at 0.82, 80 % of the kernels of a source that is left out are within the intervals of the others,
in each class of sizes (docs/accuracy.md)."""
FEWEST, FEWEST_SOURCES = 8, 4
"""The minimum number of measured kernels in a group, and of their different sources, for the group to have an interval."""
SIZES = (10.0, 100.0)
"""Times in microseconds that separate the size classes of launches: short launches are bound by launch overhead and latency,
long ones by bandwidth and throughput."""
SIDES = {"copy": "vector", "element-wise": "vector", "rearrangement": "vector", "reduction": "vector", "sort": "vector",
         "small gemm": "cube", "gemm": "cube", "attention": "mixed", "mixed": "mixed"}
"""The cores that the launches of each class use: ``vector``, ``cube``, or ``mixed`` for both kinds."""


@dataclass(frozen=True)
class MeasuredKernel:
    """A measured kernel and its modelled time.

    Attributes:
        name: the name of the row in ``accuracy.json``.
        kind: the class of the launch (``Launch.kind``), such as ``gemm``.
        source: the publication that the measurement is from.
        chip: the name of the chip that was measured.
        families: the families of chips that have the same cores as the measured chip.
        measured: the measured time in microseconds.
        modelled: the modelled time in microseconds.
        left_out: the error as a share of the modelled time, if the model's constants are fitted without the measurements of
            this source.
    """

    name: str
    kind: str
    source: str
    chip: str
    families: tuple[str, ...]
    measured: float
    modelled: float
    left_out: float

    @property
    def error(self) -> float:
        """The error as a share of the modelled time, with the constants of this package (fitted to all sources)."""
        return abs(self.measured / self.modelled - 1.0)


@cache
def measured_kernels() -> tuple[MeasuredKernel, ...]:
    """Returns all measured kernels of ``accuracy.json``."""
    rows: dict[str, dict[str, Any]] = json.loads((files("tilelang_npu.target") / "accuracy.json").read_text("utf-8"))["rows"]
    return tuple(MeasuredKernel(**{**row, "name": name, "families": tuple(row["families"])}) for name, row in rows.items())


def size_class(us: float) -> int:
    """Returns 0 for a launch of under 10 us, 1 for one of up to 100 us, and 2 for a longer one."""
    return sum(us > limit for limit in SIZES)


def alike(kind: str, size: int, rows: Iterable[MeasuredKernel]) -> Sequence[MeasuredKernel]:
    """Returns the most specific group of measured kernels that a launch belongs to and that is large enough.

    The groups are tried in this order: kernels of the launch's class and size class, kernels that use the same kinds of cores
    and have its size class, kernels that use the same kinds of cores. The result is empty if too few kernels were measured in
    each group.

    Args:
        kind: the class of the launch (``Launch.kind``).
        size: the size class of the launch (:func:`size_class`).
        rows: the measured kernels to choose from.
    """
    every = list(rows)
    side = SIDES[kind]
    for group in ([row for row in every if row.kind == kind and size_class(row.modelled) == size],
                  [row for row in every if SIDES[row.kind] == side and size_class(row.modelled) == size],
                  [row for row in every if SIDES[row.kind] == side]):
        if len(group) >= FEWEST and len({row.source for row in group}) >= FEWEST_SOURCES:
            return group
    return ()


def interval(errors: Iterable[float]) -> float:
    """Returns the half-width of the prediction interval: a further error is at most as large with probability ``COVERED``.

    Args:
        errors: the known errors, at least one, as shares of the modelled time.
    """
    ordered = sorted(errors)
    return ordered[min(len(ordered), ceil(LEVEL * (len(ordered) + 1))) - 1]


def error_of(kind: str, us: float, chip: Chip) -> float | None:
    """Returns the error of a launch's modelled time as a share of that time: of measured kernels like the launch, 80 % take
    between ``us * (1 - error)`` and ``us * (1 + error)``.

    Returns None if too few kernels like the launch were measured on chips of the same family, or if a user's file describes
    the chip.

    Args:
        kind: the class of the launch (``Launch.kind``).
        us: the modelled time of the launch in microseconds.
        chip: the chip that the launch is modelled on.
    """
    return None if chip.file else _error(kind, size_class(us), chip.family)


@cache
def _error(kind: str, size: int, family: str) -> float | None:
    found = alike(kind, size, (row for row in measured_kernels() if family in row.families))
    return interval(row.left_out for row in found) if found else None
