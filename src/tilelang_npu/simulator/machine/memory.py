"""The memories of one core while a block runs on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.target import Chip

Array = NDArray[Any]
"""An array of an element type that only the kernel knows."""
Bytes = NDArray[np.uint8]
POISON = 0xFF
"""Byte that fills on-chip memory when a block starts: NaN as a float, -1 as a signed integer."""


class CoreMemory:
    """Byte arrays of the chip's capacities; only the used part of each is backed and poisoned.

    Args:
        chip: gives the capacities.
        core: ``AIC`` or ``AIV``.
        extents: bytes from the start that the program uses, by address space.
    """

    def __init__(self, chip: Chip, core: str, extents: Mapping[str, int]) -> None:
        self.arrays: dict[str, Bytes] = {}
        self._used: list[Bytes] = []
        for name in chip.memories(core):
            used = extents.get(name, 0)
            array = np.empty(chip.memory[name].size if used else 0, np.uint8)
            self.arrays[name] = array
            if used:
                self._used.append(array[:used])

    def poison(self, byte: int = POISON) -> None:
        """Forget what the last block left."""
        for used in self._used:
            used.fill(byte)


def as_bytes(array: Array) -> Bytes:
    """The bytes of a contiguous array, as a view."""
    return array.reshape(-1).view(np.uint8)
