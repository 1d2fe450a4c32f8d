"""Chips as data: cores, clocks, memories, alignments, paths and rates, each with its source."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilelang_npu.target.accuracy import Accuracy, accuracies, error_of
    from tilelang_npu.target.chip_data import (
        GM,
        Banks,
        Chip,
        Cube,
        LaunchTimes,
        Memory,
        Move,
        Path,
        ScalarUnit,
        Sync,
        Traffic,
        Unit,
        VectorRate,
        table,
    )
    from tilelang_npu.target.known import (
        BLOCK,
        DEFAULT,
        chip,
        chips,
        core_of,
        filled_from,
        is_fractal,
        memories,
        memory,
        name_of,
        pipes_of,
        register,
        usual,
    )

__all__ = [
    "BLOCK",
    "DEFAULT",
    "GM",
    "Accuracy",
    "Banks",
    "Chip",
    "Cube",
    "LaunchTimes",
    "Memory",
    "Move",
    "Path",
    "ScalarUnit",
    "Sync",
    "Traffic",
    "Unit",
    "VectorRate",
    "accuracies",
    "chip",
    "chips",
    "core_of",
    "error_of",
    "filled_from",
    "is_fractal",
    "memories",
    "memory",
    "name_of",
    "pipes_of",
    "register",
    "table",
    "usual",
]

_HOMES = {"Accuracy": "accuracy", "accuracies": "accuracy", "error_of": "accuracy",
          **dict.fromkeys(("BLOCK", "DEFAULT", "chip", "chips", "core_of", "filled_from", "is_fractal", "memories", "memory",
                           "name_of", "pipes_of", "register", "usual"), "known")}
"""Modules of the names that are not in ``chip_data``."""


def __getattr__(name: str) -> object:
    # importing the package takes element types alone; the chips, whoever asks for one
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    found: object = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'chip_data')}"), name)
    globals()[name] = found
    return found
