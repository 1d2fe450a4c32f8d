"""The memories of one core while a block runs on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.core_coroutines import CoreId
from tilelang_npu.target import Chip
from tilelang_npu.target.chip_data import CoreKind, Space

Array = NDArray[Any]
"""A NumPy array of any element type."""
Bytes = NDArray[np.uint8]
POISON = 0xFF
"""The byte that fills on-chip memory before a block starts. A read of unwritten memory then gives NaN, or -1 as an integer."""


OTHER = 0x5B
"""The byte that fills memory in a second run whose results are compared with those of a run with ``POISON``. It gives an
ordinary number in every element type."""


class Spot(NamedTuple):
    """A range of bytes of an on-chip memory that is filled with ``POISON`` before a block starts.

    Attributes:
        memory: the memory, of all cores of the block.
        start: the offset of the first byte.
        end: the offset after the last byte.
    """

    memory: Space
    start: int
    end: int


POISON_NOW: ContextVar[int] = ContextVar("tilelang_npu_poison_byte", default=POISON)
"""The byte with which the running replay fills memory whose contents are undefined."""


def poison_elements(elements: Array) -> None:
    """Overwrites every byte of the elements of an array with the byte of the running replay."""
    elements[...] = np.full(elements.itemsize, POISON_NOW.get(), np.uint8).view(elements.dtype)[0]


def fresh(size: int) -> Bytes:
    """Returns a new array of ``size`` bytes with arbitrary contents."""
    return np.empty(size, np.uint8)


@lru_cache(4)
def untouched(size: int) -> Bytes:
    """Returns an array of ``size`` bytes for an argument that no op accesses. Calls with the same size return the same array.

    A new array for each launch would make the heap grow and shrink, and the system would clear the memory of results each time.
    """
    return fresh(size)


class CoreMemory:
    """The on-chip memories of one core as byte arrays; memories that the program does not use are empty.

    Args:
        chip: the chip, which gives the capacities.
        core: ``AIC`` or ``AIV``.
        extents: by address space, the number of bytes from the start of the memory that the program uses.
        count: the number of blocks of a batch, whose memories are allocated as one array, one after the other.
        gaps: by address space, the distance in bytes from the memory of one block to the memory of the next block; by default
            the capacity of the memory.
        made: the function that allocates an array of a number of bytes.

    Attributes:
        arrays: by address space, the bytes of the memory.
    """

    def __init__(self, chip: Chip, core: CoreKind, extents: Mapping[Space, int], count: int = 1,
                 gaps: Mapping[Space, int] = MappingProxyType({}), made: Callable[[int], Bytes] = fresh) -> None:
        self.arrays: dict[Space, Bytes] = {}
        self._used: list[Bytes] = []
        for name in chip.memories(core):
            used = extents.get(name, 0)
            gap = gaps.get(name, chip.memory[name].size)
            array = made(gap * count if used else 0)
            self.arrays[name] = array
            if used:
                self._used.append(array[:used] if count == 1 else array)

    def poison(self, byte: int = POISON, spot: Spot | None = None) -> None:
        """Fills the used parts of all memories with a byte, so that no data of an earlier block remain, and the range of
        ``spot`` with ``POISON``."""
        for used in self._used:
            used.fill(byte)
        if spot is not None and spot.memory in self.arrays:
            self.arrays[spot.memory][spot.start:spot.end] = POISON


def block_memories(chip: Chip, cores: Iterable[CoreId], extents: Sequence[Mapping[Space, int]], count: int = 1,
                   gaps: Mapping[Space, int] = MappingProxyType({}), made: Callable[[int], Bytes] = fresh
                   ) -> dict[str, CoreMemory]:
    """Allocates the memories of the cores of a block, and returns them by the name of the core: ``AIC``, ``AIV0``, ``AIV1``.

    Args:
        chip: the chip.
        cores: the cores of the block.
        extents: for each device function, the bytes that it uses by address space; a memory is as large as any of them needs.
        count, gaps, made: as for :class:`CoreMemory`.
    """
    used = {name: max(one.get(name, 0) for one in extents) for name in chip.memory}
    return {core.label: CoreMemory(chip, core.kind, used, count, gaps, made) for core in cores}


def shared_names(chip: Chip) -> list[str]:
    """Returns the names of the variables of generated code that hold the memories of a block's cores.

    A name consists of ``m_`` and the address space; the names for the second Vector core end in ``_1``.
    """
    return [*(f"m_{name}" for name in chip.memory),
            *(f"m_{name}_{sub}" for sub in range(1, chip.aiv_per_aic) for name in chip.memories("AIV"))]


def shared_arrays(chip: Chip, core: CoreId, block: Mapping[str, CoreMemory]) -> list[Bytes | None]:
    """Returns the values of the variables of ``shared_names`` for the code of one core: the bytes of each memory.

    For the memories of its kind of core, the code gets the core's own arrays. For the memories of the other kind, it gets the
    arrays of the AIC or of the first Vector core.

    Args:
        chip: the chip.
        core: the core that runs the code.
        block: the memories of all cores of its block, by the name of the core.

    Returns:
        the bytes of each memory; None for the memory of a core that the block does not have.
    """
    def of(holder: str, name: Space) -> Bytes | None:
        there = block.get(holder)
        return None if there is None else there.arrays.get(name)

    first = [of(core.label if row.core == core.kind else "AIC" if row.core == "AIC" else "AIV0", name)
             for name, row in chip.memory.items()]
    return [*first, *(of(f"AIV{sub}", name) for sub in range(1, chip.aiv_per_aic) for name in chip.memories("AIV"))]


def as_bytes(array: Array) -> Bytes:
    """Returns a view of the bytes of a contiguous array, as a one-dimensional array."""
    return array.reshape(-1).view(np.uint8)
