"""The source dialects: the variants of TileLang in which a kernel can be written."""

from __future__ import annotations

from typing import Literal

TracedDialect = Literal["npuir", "ascendc"]
"""The dialects whose rules a trace follows. They are named after the branches of TileLang-Ascend."""
SourceDialect = Literal[TracedDialect, "gpu"]
"""The dialects of a kernel's source. A kernel for GPUs is traced by the rules of ``npuir``."""
RequestedDialect = Literal[SourceDialect, "auto"]
"""What a caller can ask for: a dialect, or ``auto``, by which the kernel's operations determine the dialect."""
