"""Which arguments of a launch are the same bytes, and copies of them that are again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilelang_npu.simulator.machine.memory import Array


@dataclass
class SharedMemory:
    """Kernel arguments that share bytes: usually one.

    Attributes:
        start: address of the first byte.
        size: bytes.
        delta: where each argument begins in it.
    """

    start: int
    size: int
    delta: dict[int, int] = field(default_factory=dict)


def memories(arrays: Sequence[Array | None]) -> list[SharedMemory]:
    """The arguments of a launch, those that share bytes together."""
    spans = sorted((array.ctypes.data, array.nbytes, number) for number, array in enumerate(arrays) if array is not None)
    found: list[SharedMemory] = []
    for start, size, number in spans:
        if found and start < found[-1].start + found[-1].size:
            last = found[-1]
            last.size = max(last.size, start + size - last.start)
        else:
            found.append(SharedMemory(start, size))
        found[-1].delta[number] = start - found[-1].start
    return found


def copies(arrays: Sequence[Array | None], which: Iterable[int]) -> Iterator[tuple[Array, dict[int, slice]]]:
    """Copies of the memories in which some of the arrays lie; each with the place that every array has in it.

    Args:
        arrays: bytes, or None.
        which: their numbers; the others of a memory come with them.
    """
    wanted = set(which)
    for memory in memories(arrays):
        if not wanted.isdisjoint(memory.delta):
            held = np.empty(memory.size, np.uint8)
            places = {}
            for number, delta in memory.delta.items():
                array = arrays[number]
                assert array is not None
                places[number] = slice(delta, delta + array.nbytes)
                held[places[number]] = array
            yield held, places
