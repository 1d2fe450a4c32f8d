"""A pool of byte arrays for the on-chip memories of cores, which later launches of the process use again.

Without the pool, the operating system would clear each page of new memory at its first access. For a launch, this takes a
thread as long as computing two or three batches of blocks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tilelang_npu.simulator.machine.memory import Bytes, fresh

_MOST = os.cpu_count() or 1
"""Limit of the number of arrays in the pool: one for each thread that can compute at a time."""
_LINE = 64
_kept: list[Bytes] = []
"""The arrays of the pool that are not in use. ``append`` and ``pop`` of a list are atomic, so no lock is needed."""


class MemoryArena:
    """Allocates the on-chip memories of one thread's cores from an array of the pool.

    Args:
        held: the array; an allocation that exceeds it gets a new array.
    """

    def __init__(self, held: Bytes) -> None:
        self._held = held
        self._end = 0
        self._most = 0

    def part(self, size: int) -> Bytes:
        """Allocates ``size`` bytes with arbitrary contents, aligned to 64 bytes."""
        start, self._end = self._end, self._end + -(-size // _LINE) * _LINE
        self._most = max(self._most, self._end)
        return self._held[start:start + size] if self._end <= len(self._held) else fresh(size)

    def clear(self) -> None:
        """Frees all allocations, so that later allocations use the same bytes again."""
        self._end = 0

    def left(self) -> Bytes:
        """Returns the array to put into the pool: at least as large as all bytes allocated between two calls of ``clear``."""
        return self._held if self._most <= len(self._held) else fresh(self._most)


@contextmanager
def borrow_arena() -> Iterator[MemoryArena]:
    """A context manager that provides an allocator to one thread.

    The bytes of the allocator come from the pool. They return to the pool at the end, unless the body raises an error.
    """
    try:
        held = _kept.pop()
    except IndexError:
        held = fresh(0)
    found = MemoryArena(held)
    yield found
    if len(_kept) < _MOST:
        _kept.append(found.left())
