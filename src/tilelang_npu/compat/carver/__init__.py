"""Tile sizes to begin a tuning with: ``tilelang.carver``.

A template describes an operation and its sizes; ``recommend_hints`` lists tiles that fit the chip's memories, best estimate
first. The estimate counts what decides on these machines: bytes moved, waves of blocks over the cores, and a fixed cost per
tile. It ranks candidates; what a kernel really takes is measured by tuning.
"""

from tilelang_npu.compat.carver.arch import Ascend, AscendArch, NPUUtils, auto_infer_current_arch
from tilelang_npu.compat.carver.templates import (
    ElementwiseTemplate,
    FlashAttentionTemplate,
    GEMVTemplate,
    GeneralReductionTemplate,
    Hint,
    MatmulTemplate,
)

__all__ = [
    "Ascend",
    "AscendArch",
    "ElementwiseTemplate",
    "FlashAttentionTemplate",
    "GEMVTemplate",
    "GeneralReductionTemplate",
    "Hint",
    "MatmulTemplate",
    "NPUUtils",
    "auto_infer_current_arch",
]
