"""The chips as data (cores, clocks, memories, alignments, data paths and rates, with their sources), and their registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang_npu.deferred import deferred

if TYPE_CHECKING:
    from tilelang_npu.target.accuracy import MeasuredKernel, error_of, measured_kernels
    from tilelang_npu.target.chip_data import (
        GM,
        Banks,
        Chip,
        Cube,
        Features,
        LaunchTimes,
        Links,
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
        families,
        family_of,
        features_of,
        filled_from,
        is_fractal,
        memories,
        memory,
        name_of,
        pipes_of,
        register,
        unregister,
        usual,
    )

__all__ = [
    "BLOCK",
    "DEFAULT",
    "GM",
    "Banks",
    "Chip",
    "Cube",
    "Features",
    "LaunchTimes",
    "Links",
    "MeasuredKernel",
    "Memory",
    "Move",
    "Path",
    "ScalarUnit",
    "Sync",
    "Traffic",
    "Unit",
    "VectorRate",
    "chip",
    "chips",
    "core_of",
    "error_of",
    "families",
    "family_of",
    "features_of",
    "filled_from",
    "is_fractal",
    "measured_kernels",
    "memories",
    "memory",
    "name_of",
    "pipes_of",
    "register",
    "table",
    "unregister",
    "usual",
]

# Importing the package loads only the element types.
__getattr__ = deferred(__name__, {
    **dict.fromkeys(("MeasuredKernel", "error_of", "measured_kernels"), "accuracy"),
    **dict.fromkeys(("GM", "Banks", "Chip", "Cube", "Features", "LaunchTimes", "Links", "Memory", "Move", "Path", "ScalarUnit",
                     "Sync", "Traffic", "Unit", "VectorRate", "table"), "chip_data"),
    **dict.fromkeys(("BLOCK", "DEFAULT", "chip", "chips", "core_of", "families", "family_of", "features_of", "filled_from",
                     "is_fractal", "memories", "memory", "name_of", "pipes_of", "register", "unregister", "usual"), "known")})
