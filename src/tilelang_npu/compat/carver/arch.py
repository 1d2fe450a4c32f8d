"""The chip in the form of upstream's tuning tools: ``AscendArch``, ``Ascend`` and ``NPUUtils``."""

from __future__ import annotations

from tilelang_npu.runtime.settings.targets import select_chip
from tilelang_npu.target import Chip

__all__ = ["Ascend", "AscendArch", "NPUUtils", "auto_infer_current_arch"]


class AscendArch:
    """The sizes of a chip.

    Args:
        chip_name: its name; the chip that kernels are compiled for where None.

    Attributes:
        chip: the chip's description.
        name, chip_name: its name.
        aicube_core_num, compute_max_core: the number of Cube cores.
        aivector_core_num: the number of Vector cores.
        ub_cap: the bytes of UB that a kernel may use; ``l1_cap``, ``l0a_cap``, ``l0b_cap``, ``l0c_cap`` and ``l2_cap``
            likewise.
    """

    platform = "ascend"

    def __init__(self, chip_name: str | None = None) -> None:
        self.chip: Chip = select_chip(chip_name, "auto", None)
        self.name = self.chip_name = self.chip.name
        self.aicube_core_num = self.compute_max_core = self.chip.aic
        self.aivector_core_num = self.chip.aiv
        sizes = {name: memory.size - memory.reserved for name, memory in self.chip.memory.items()}
        self.ub_cap, self.l1_cap = sizes["ub"], sizes["cbuf"]
        self.l0a_cap, self.l0b_cap, self.l0c_cap = sizes["ca"], sizes["cb"], sizes["cc"]
        self.l2_cap = self.chip.l2


class Ascend(AscendArch):
    """The name of ``AscendArch`` in the ascendc branch."""


def auto_infer_current_arch() -> AscendArch:
    """The chip that kernels are compiled for."""
    return AscendArch()


class NPUUtils:
    """Core counts of the chip that kernels are compiled for."""

    @classmethod
    def get(cls) -> NPUUtils:
        """The object; upstream has one."""
        return cls()

    def get_aicore_num(self) -> int:
        """The number of Cube cores."""
        return self.get_aicube_core_num()

    def get_aicube_core_num(self) -> int:
        """The number of Cube cores."""
        return AscendArch().aicube_core_num

    def get_aivector_core_num(self) -> int:
        """The number of Vector cores."""
        return AscendArch().aivector_core_num

    def get_arch(self) -> str:
        """The chip's name."""
        return AscendArch().name
