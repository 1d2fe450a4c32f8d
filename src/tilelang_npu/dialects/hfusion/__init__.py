"""HFusion, AscendNPU-IR's dialect of tensor computations before their lowering to HIVM instructions (master 52f96a13)."""

from __future__ import annotations

from xdsl.ir import Dialect

from tilelang_npu.dialects.hfusion.enums import ENUMS
from tilelang_npu.dialects.hfusion.named import NAMED
from tilelang_npu.dialects.hfusion.tensor_functions import FUNCTIONS

__all__ = ["HFusion"]

HFusion = Dialect("hfusion", [*NAMED, *FUNCTIONS], [*ENUMS])
