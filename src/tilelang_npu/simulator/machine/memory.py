"""The memories of one core while a block runs on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.core_coroutines import CoreId
from tilelang_npu.target import Chip

Array = NDArray[Any]
"""An array of an element type that only the kernel determines."""
Bytes = NDArray[np.uint8]
POISON = 0xFF
"""Byte that fills on-chip memory before a block starts: NaN as a float, -1 as a signed integer."""


def fresh(size: int) -> Bytes:
    """Returns bytes with arbitrary contents."""
    return np.empty(size, np.uint8)


@lru_cache(4)
def untouched(size: int) -> Bytes:
    """Returns bytes that no op accesses, the same object for every caller. New bytes for each launch would make the heap grow
    and shrink, and the system would clear the memory of results each time."""
    return fresh(size)


class CoreMemory:
    """The memories of one core, as byte arrays; only the part that the program uses is allocated and poisoned.

    Args:
        chip: gives the capacities.
        core: ``AIC`` or ``AIV``.
        extents: bytes from the start that the program uses, by address space.
        count: number of blocks whose memories are allocated together, one after the other.
        gaps: bytes from the memory of one block to that of the next, by address space.
        made: allocates bytes.
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
        """Overwrites what the last block left."""
        for used in self._used:
            used.fill(byte)


def block_memories(chip: Chip, cores: Iterable[CoreId], extents: Sequence[Mapping[str, int]], count: int = 1,
                   gaps: Mapping[str, int] = MappingProxyType({}), made: Callable[[int], Bytes] = fresh
                   ) -> dict[str, CoreMemory]:
    """Returns the memories of the cores of a block by ``AIC``, ``AIV0`` and ``AIV1``; as large as any of their functions needs.

    ``count``, ``gaps`` and ``made`` are as for :class:`CoreMemory`, for batched blocks.
    """
    used = {name: max(one.get(name, 0) for one in extents) for name in chip.memory}
    return {core.label: CoreMemory(chip, core.kind, used, count, gaps, made) for core in cores}


def shared_names(chip: Chip) -> list[str]:
    """Returns the names of the memories of a block's cores in generated code; those of the second Vector core end in ``_1``."""
    return [*(f"m_{name}" for name in chip.memory), *(f"m_{name}_1" for name in chip.memories("AIV"))]


def shared_arrays(chip: Chip, core: CoreId, block: Mapping[str, CoreMemory]) -> list[Bytes | None]:
    """Returns the bytes of the memories, in the order of ``shared_names``, as the code of one core sees them.

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
    """Returns the bytes of a contiguous array, as a view."""
    return array.reshape(-1).view(np.uint8)
