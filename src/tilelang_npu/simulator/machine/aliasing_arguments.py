"""Kernel arguments whose bytes overlap in memory, and copies of arguments that overlap in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilelang_npu.simulator.machine.memory import Array


@dataclass
class MemoryRange:
    """A contiguous range of memory that one argument occupies, or several arguments that overlap.

    Attributes:
        start: the address of the first byte.
        size: the length of the range in bytes.
        delta: for each argument in the range, by its number, the byte offset at which it begins.
    """

    start: int
    size: int
    delta: dict[int, int] = field(default_factory=dict)


def memory_ranges(arrays: Sequence[Array | None]) -> list[MemoryRange]:
    """Returns the memory ranges that the arguments occupy, in the order of addresses; arguments that overlap share a range.

    Args:
        arrays: the bytes of each argument, by its number; None for a scalar.
    """
    spans = sorted((array.ctypes.data, array.nbytes, number) for number, array in enumerate(arrays) if array is not None)
    found: list[MemoryRange] = []
    for start, size, number in spans:
        if found and start < found[-1].start + found[-1].size:
            last = found[-1]
            last.size = max(last.size, start + size - last.start)
        else:
            found.append(MemoryRange(start, size))
        found[-1].delta[number] = start - found[-1].start
    return found


def range_copies(arrays: Sequence[Array | None], which: Iterable[int]) -> Iterator[tuple[Array, dict[int, slice]]]:
    """Yields a copy of each memory range that contains one of the arguments ``which``.

    Args:
        arrays: the bytes of each argument, by its number; None for a scalar.
        which: the numbers of the arguments to copy; arguments that overlap with them are copied with them.

    Yields:
        the bytes of the copy, and for each argument in it, by number, the slice of these bytes that it occupies.
    """
    wanted = set(which)
    for memory in memory_ranges(arrays):
        if not wanted.isdisjoint(memory.delta):
            held = np.empty(memory.size, np.uint8)
            places = {}
            for number, delta in memory.delta.items():
                array = arrays[number]
                assert array is not None
                places[number] = slice(delta, delta + array.nbytes)
                held[places[number]] = array
            yield held, places
