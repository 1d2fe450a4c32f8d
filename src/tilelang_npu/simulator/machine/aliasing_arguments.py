"""Kernel arguments that alias each other's bytes, and copies of them that alias in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilelang_npu.simulator.machine.memory import Array


@dataclass
class MemoryRange:
    """A range of memory that one argument occupies, or several that overlap.

    Attributes:
        start: address of the first byte.
        size: bytes.
        delta: by argument number, its byte offset in the range.
    """

    start: int
    size: int
    delta: dict[int, int] = field(default_factory=dict)


def memory_ranges(arrays: Sequence[Array | None]) -> list[MemoryRange]:
    """Returns the memory ranges of the arguments; arguments that overlap share one."""
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
    """Yields a copy of each memory range that contains one of some arguments, with the slice of every argument in it.

    Args:
        arrays: bytes, or None, by argument number.
        which: argument numbers; arguments that overlap with them are copied too.
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
