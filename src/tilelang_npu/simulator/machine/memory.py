"""The memories of one core while a block runs on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.running_cores import CoreId
from tilelang_npu.target import Chip

Array = NDArray[Any]
"""An array of an element type that only the kernel knows."""
Bytes = NDArray[np.uint8]
POISON = 0xFF
"""Byte that fills on-chip memory when a block starts: NaN as a float, -1 as a signed integer."""


def fresh(size: int) -> Bytes:
    """So many bytes that hold anything."""
    return np.empty(size, np.uint8)


@lru_cache(4)
def untouched(size: int) -> Bytes:
    """So many bytes that nobody is to touch, the same ones for all who ask: were there new ones for each launch, the heap would
    grow beyond what it keeps where they are let go, and the memory of results with them be cleared anew."""
    return fresh(size)


class CoreMemory:
    """Byte arrays of the chip's capacities; only the used part of each is backed and poisoned.

    Args:
        chip: gives the capacities.
        core: ``AIC`` or ``AIV``.
        extents: bytes from the start that the program uses, by address space.
        count: cores that work alike; of each memory they have one behind the other.
        gaps: bytes from the memory of one to that of the next, by address space, where there are several.
        made: gives so many bytes.
    """

    def __init__(self, chip: Chip, core: str, extents: Mapping[str, int], count: int = 1,
                 gaps: Mapping[str, int] = MappingProxyType({}), made: Callable[[int], Bytes] = fresh) -> None:
        self.arrays: dict[str, Bytes] = {}
        self._used: list[Bytes] = []
        for name in chip.memories(core):
            used = extents.get(name, 0)
            gap = gaps.get(name, chip.memory[name].size)
            array = made(gap * count if used else 0)
            self.arrays[name] = array
            if used:
                self._used.append(array[:used] if count == 1 else array)

    def poison(self, byte: int = POISON) -> None:
        """Forget what the last block left."""
        for used in self._used:
            used.fill(byte)


def block_memories(chip: Chip, cores: Iterable[CoreId], extents: Sequence[Mapping[str, int]], count: int = 1,
                   gaps: Mapping[str, int] = MappingProxyType({}), made: Callable[[int], Bytes] = fresh
                   ) -> dict[str, CoreMemory]:
    """The memories of the cores of a block by ``AIC``, ``AIV0`` and ``AIV1``; what any of their functions uses is backed.

    ``count``, ``gaps`` and ``made`` are as for :class:`CoreMemory`, of blocks that run as one.
    """
    used = {name: max(one.get(name, 0) for one in extents) for name in chip.memory}
    return {core.label: CoreMemory(chip, core.kind, used, count, gaps, made) for core in cores}


def shared_names(chip: Chip) -> list[str]:
    """What generated code calls the memories of a block's cores: those of a second Vector core have its number behind them."""
    return [*(f"m_{name}" for name in chip.memory), *(f"m_{name}_1" for name in chip.memories("AIV"))]


def shared_arrays(chip: Chip, core: CoreId, block: Mapping[str, CoreMemory]) -> list[Bytes | None]:
    """The bytes of the memories in the order of their names, as the code of one core sees them.

    Args:
        chip: the chip.
        core: the core.
        block: the memories of all cores of its block.
    """
    def of(holder: str, name: str) -> Bytes | None:
        there = block.get(holder)
        return None if there is None else there.arrays.get(name)

    first = [of(core.label if row.core == core.kind else "AIC" if row.core == "AIC" else "AIV0", name)
             for name, row in chip.memory.items()]
    return [*first, *(of("AIV1", name) for name in chip.memories("AIV"))]


def as_bytes(array: Array) -> Bytes:
    """The bytes of a contiguous array, as a view."""
    return array.reshape(-1).view(np.uint8)
