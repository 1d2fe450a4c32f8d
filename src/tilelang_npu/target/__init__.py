"""Chips as data: cores, clocks, memories, alignments, paths and rates, each with its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang_npu.deferred import deferred

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

# Importing the package loads only the element types.
__getattr__ = deferred(__name__, {
    **dict.fromkeys(("Accuracy", "accuracies", "error_of"), "accuracy"),
    **dict.fromkeys(("GM", "Banks", "Chip", "Cube", "LaunchTimes", "Memory", "Move", "Path", "ScalarUnit", "Sync", "Traffic",
                     "Unit", "VectorRate", "table"), "chip_data"),
    **dict.fromkeys(("BLOCK", "DEFAULT", "chip", "chips", "core_of", "filled_from", "is_fractal", "memories", "memory",
                     "name_of", "pipes_of", "register", "usual"), "known")})
