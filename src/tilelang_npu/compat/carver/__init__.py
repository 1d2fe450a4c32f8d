"""Tile sizes to start a tuning with: ``tilelang.carver``.

A template describes an operation and its sizes; ``recommend_hints`` lists tiles that fit the chip's memories, by estimated
time. The estimate counts the bytes that are moved, the waves of blocks over the cores, and a fixed cost for each tile. It ranks
candidates; tuning finds their modelled time.
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
