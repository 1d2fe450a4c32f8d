"""A pool of bytes for the on-chip memories of cores, kept from launch to launch.

The system clears each page of new memory when it is first touched, which takes a thread as long as computing two or three
batches of blocks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tilelang_npu.simulator.machine.memory import Bytes, fresh

_MOST = os.cpu_count() or 1
"""Limit of the memories that are kept: one for each thread that can compute at a time."""
_LINE = 64
_kept: list[Bytes] = []
"""Memories that are not in use. ``append`` and ``pop`` of a list are atomic, so no lock is needed."""


class MemoryArena:
    """Allocates the memories of one thread's cores.

    Args:
        held: kept bytes to allocate from; new bytes are made when they do not suffice.
    """

    def __init__(self, held: Bytes) -> None:
        self._held = held
        self._end = 0
        self._most = 0

    def part(self, size: int) -> Bytes:
        """Allocates bytes with arbitrary contents."""
        start, self._end = self._end, self._end + -(-size // _LINE) * _LINE
        self._most = max(self._most, self._end)
        return self._held[start:start + size] if self._end <= len(self._held) else fresh(size)

    def clear(self) -> None:
        """Frees all allocations."""
        self._end = 0

    def left(self) -> Bytes:
        """Returns bytes for the next launch: enough for everything that was allocated at a time."""
        return self._held if self._most <= len(self._held) else fresh(self._most)


@contextmanager
def borrow_arena() -> Iterator[MemoryArena]:
    """Lends an allocator to one thread; its bytes return to the pool unless an error is raised."""
    try:
        held = _kept.pop()
    except IndexError:
        held = fresh(0)
    found = MemoryArena(held)
    yield found
    if len(_kept) < _MOST:
        _kept.append(found.left())
