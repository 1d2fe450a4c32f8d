"""Bytes on chip of cores that compute, kept from launch to launch.

The system clears each page of fresh memory when it is first touched: for a thread of a launch that takes as long as two or
three piles of blocks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tilelang_npu.simulator.machine.memory import Bytes, fresh

_MOST = os.cpu_count() or 1
"""Memories that are kept: one for each thread that can compute at a time."""
_LINE = 64
_kept: list[Bytes] = []
"""Those that nobody uses. Threads take from a list and add to it one at a time."""


class Room:
    """Bytes for the memories of one thread's cores.

    Args:
        held: what they are taken from, as far as it goes.
    """

    def __init__(self, held: Bytes) -> None:
        self._held = held
        self._end = 0
        self._most = 0

    def part(self, size: int) -> Bytes:
        """The next bytes, which hold anything."""
        start, self._end = self._end, self._end + -(-size // _LINE) * _LINE
        self._most = max(self._most, self._end)
        return self._held[start:start + size] if self._end <= len(self._held) else fresh(size)

    def clear(self) -> None:
        """From here on the same bytes are given again."""
        self._end = 0

    def left(self) -> Bytes:
        """What to keep: enough for all that was asked for."""
        return self._held if self._most <= len(self._held) else fresh(self._most)


@contextmanager
def room() -> Iterator[Room]:
    """A room that nobody else has at the time; where something fails, it is let go."""
    try:
        held = _kept.pop()
    except IndexError:
        held = fresh(0)
    found = Room(held)
    yield found
    if len(_kept) < _MOST:
        _kept.append(found.left())
