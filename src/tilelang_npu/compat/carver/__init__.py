"""The module ``tilelang.carver``, which recommends tile sizes as candidates for tuning.

A template describes an operation and its sizes. ``recommend_hints`` returns tile sizes that fit into the chip's memories,
ordered by estimated time. The estimate is a simple formula of the moved bytes, the number of waves of blocks, and a fixed cost
per tile. It only ranks the candidates; tuning determines their modelled time.
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
