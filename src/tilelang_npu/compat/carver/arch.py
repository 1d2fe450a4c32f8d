"""The classes ``AscendArch``, ``Ascend`` and ``NPUUtils``, which describe a chip as TileLang-Ascend's tuning tools do."""

from __future__ import annotations

from tilelang_npu.runtime.settings.targets import select_chip
from tilelang_npu.target import Chip

__all__ = ["CDNA", "CUDA", "Ascend", "AscendArch", "NPUUtils", "auto_infer_current_arch"]


class AscendArch:
    """The core counts and memory sizes of a chip.

    Args:
        chip_name: the name of the chip; None for the chip for which kernels are compiled by default.

    Attributes:
        chip: the full description of the chip.
        name: the name of the chip.
        chip_name: the same as ``name``.
        aicube_core_num: the number of Cube cores.
        compute_max_core: the same as ``aicube_core_num``.
        aivector_core_num: the number of Vector cores.
        ub_cap: the number of bytes of UB that a kernel can use. ``l1_cap``, ``l0a_cap``, ``l0b_cap``, ``l0c_cap`` and
            ``l2_cap`` are the same for the other memories.
        block_cap: the number of bytes of on-chip memory that a block has for its tiles: those of the smaller of UB and L1.
    """

    platform = "ascend"

    def __init__(self, chip_name: str | None = None) -> None:
        self.chip: Chip = select_chip(chip_name, "auto", None)
        self.name = self.chip_name = self.chip.name
        self.aicube_core_num = self.compute_max_core = self.chip.aic
        self.aivector_core_num = self.chip.aiv
        sizes = {name: memory.size - memory.reserved for name, memory in self.chip.memory.items()}
        self.ub_cap, self.l1_cap = sizes["ub"], sizes["cbuf"]
        self.block_cap = min(self.ub_cap, self.l1_cap)
        self.l0a_cap, self.l0b_cap, self.l0c_cap = sizes["ca"], sizes["cb"], sizes["cc"]
        self.l2_cap = self.chip.l2


class Ascend(AscendArch):
    """The same as ``AscendArch``, under the name that TileLang-Ascend's ascendc branch uses."""


class CUDA(AscendArch):
    """The same as ``AscendArch``, under the name that scripts for NVIDIA's GPUs use; ``target`` has no effect."""

    def __init__(self, target: object = None) -> None:
        super().__init__()


class CDNA(CUDA):
    """The same as ``AscendArch``, under the name that scripts for AMD's GPUs use; ``target`` has no effect."""


def auto_infer_current_arch() -> AscendArch:
    """Returns the description of the chip for which kernels are compiled by default."""
    return AscendArch()


class NPUUtils:
    """The name and the core counts of the chip for which kernels are compiled by default."""

    @classmethod
    def get(cls) -> NPUUtils:
        """Returns an object of this class."""
        return cls()

    def get_aicore_num(self) -> int:
        """Returns the number of Cube cores."""
        return self.get_aicube_core_num()

    def get_aicube_core_num(self) -> int:
        """Returns the number of Cube cores."""
        return AscendArch().aicube_core_num

    def get_aivector_core_num(self) -> int:
        """Returns the number of Vector cores."""
        return AscendArch().aivector_core_num

    def get_arch(self) -> str:
        """Returns the chip's name."""
        return AscendArch().name
