"""Loops that do not end: a ``while`` that changes nothing any more, and a core that issues ops without end.

What a core does follows from its memories and variables alone. So an iteration of a ``while`` that leaves all of them as they
were is followed by equal ones for ever. That is looked for now and then: the loop has to run through :data:`FIRST` iterations
before it costs anything. A loop that changes something each time is only long, and so is one whose length is data: wrong data
make it so long that it seems endless, and :data:`MOST_OPS` ends it. A loop whose length follows from the kernel's sizes ends by
itself; it may be as long as the memory of this machine holds its ops.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.simulator.machine.memory import Array

FIRST = 256
"""Iterations of a ``while`` before its state is looked at for the first time; then at every power of two."""
PERIOD = 8
"""Iterations behind that in which the same state is looked for again."""
LONG = 1 << 16
"""Iterations of a counted loop between two looks at how many ops there are."""
IDLE = 4
"""Iterations of counted loops per op that a core may issue: loops that issue none come to their end, too."""
MOST_OPS = 8_000_000
"""Ops that a core may issue in one block by the time it is in a ``while``, or in a loop whose length is data."""
BYTES = 256
"""What is recorded of an op takes so many bytes at most: 100 of one that touches GM."""
MOST_KNOWN = 1 << 32
"""Iterations of loops of known lengths that a core may go through in a block: some minutes of doing nothing."""


def room() -> int:
    """Ops whose records half the memory of this machine holds."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not told, as on Windows
        memory = 8 << 30
    return max(MOST_OPS, memory // 2 // BYTES)


class Guard:
    """What the generated code asks while one core of a launch runs it.

    Args:
        core: ``AIC`` or ``AIV``.
        most_ops: ops that a core may issue in a block, in every loop alike; with None, by what is known of the loop.
    """

    def __init__(self, core: str, most_ops: int | None = None) -> None:
        self.core = core
        self.most = MOST_OPS if most_ops is None else most_ops
        self._stated = most_ops is not None
        self._events: object = None
        self._ran = 0

    def label(self, sub: int) -> str:
        """``AIC``, ``AIV0`` or ``AIV1``."""
        return self.core if self.core == "AIC" else f"AIV{sub}"

    def counted(self, trips: range, events: Sequence[object], block: int, sub: int, known: bool = True) -> Iterable[int]:
        """The iterations of a counted loop.

        Args:
            trips: its numbers.
            events: the ops of the core so far.
            block, sub: the core.
            known: whether data have no part in how many there are.

        Raises:
            TileError: S306, at its start or behind 65 536 iterations, the core has issued too many ops, or has gone through too
                many iterations.
        """
        if events is not self._events:  # of another block, or another core
            self._events, self._ran = events, 0
        self.check(events, block, sub, known=known)
        if trips[LONG:]:
            return self._in_parts(trips, events, block, sub, known)
        self._ran += len(trips)
        return trips

    def _in_parts(self, trips: range, events: Sequence[object], block: int, sub: int, known: bool) -> Iterator[int]:
        while trips:
            yield from trips[:LONG]
            self._ran += LONG
            self.check(events, block, sub, known=known)
            trips = trips[LONG:]

    def check(self, events: Sequence[object], block: int, sub: int, *, known: bool = False) -> None:
        """Raise S306 where a core has issued too many ops, or has gone through too many iterations."""
        by_itself = known and not self._stated
        if len(events) > self.most and len(events) > (most := room() if by_itself else self.most):
            why = "more do not fit into the memory of this machine" if by_itself else "as each of them is kept"
            raise TileError(
                f"block {block}: {self.label(sub)} has issued {_spaced(len(events))} ops and is in this loop still",
                code="S306", notes=(f"a core may issue {_spaced(most)} in a block, {why}",),
                help="check the bound of the loop; if it is meant to be that long, TILELANG_NPU_MAX_OPS=N raises the limit")
        if self._ran > (most := MOST_KNOWN if by_itself else IDLE * self.most):
            raise self.too_long(self._ran, block, sub, most)

    def too_long(self, iterations: int, block: int, sub: int, most: int) -> TileError:
        """S306 for a core that issues no ops, or few."""
        return TileError(
            f"block {block}: {self.label(sub)} has gone through {_spaced(iterations)} iterations and is in this loop still",
            code="S306", notes=(f"a core may go through {_spaced(most)} in a block",),
            help="check where the loop ends; if it is meant to be that long, TILELANG_NPU_MAX_OPS=N raises the limit")

    def watch(self, block: int, sub: int) -> Watch:
        """Somebody who looks at a ``while`` that starts."""
        return Watch(self, block, sub)


class Watch:
    """Counts the iterations of a ``while`` and compares what they leave."""

    def __init__(self, guard: Guard, block: int, sub: int) -> None:
        self._guard, self._block, self._sub = guard, block, sub
        self._count = 0
        self._looked = 0
        self._kept = b""

    def __call__(self, events: Sequence[object], variables: Sequence[object], memories: Sequence[Array]) -> None:
        """An iteration is over.

        Args:
            events: the ops of the core so far.
            variables: what the loop hands on, and scalar storage.
            memories: bytes that the loop writes.

        Raises:
            TileError: S305, the loop is where it was; S306, the core has issued too many ops.
        """
        self._count += 1
        if self._count < FIRST:
            return
        if self._count & (self._count - 1) == 0:
            self._guard.check(events, self._block, self._sub)
            self._looked, self._kept = self._count, _digest(variables, memories)
        elif self._count <= self._looked + PERIOD and _digest(variables, memories) == self._kept:
            period = self._count - self._looked
            raise self._endless(
                "an iteration changes nothing" if period == 1 else f"every {period} iterations all is as it was")
        elif self._count % LONG == 0:
            self._guard.check(events, self._block, self._sub)
            self._check_count()

    def passed(self) -> None:
        """An iteration is over, of which nothing is known but that.

        Raises:
            TileError: S306, there were too many.
        """
        self._count += 1
        self._check_count()

    def _check_count(self) -> None:
        if self._count > (most := IDLE * self._guard.most):
            raise self._guard.too_long(self._count, self._block, self._sub, most)

    def never(self) -> None:
        """The first iteration is over, and nothing in the loop writes what its condition reads.

        Raises:
            TileError: S305.
        """
        self._count = 1
        raise self._endless("nothing in it changes what its condition reads")

    def _endless(self, why: str) -> TileError:
        return TileError(
            f"block {self._block}: {self._guard.label(self._sub)} never leaves this loop: {why}", code="S305",
            notes=(f"S of {self._guard.label(self._sub)}  iteration {self._count - 1}  waits for its own condition to change",),
            help="change in the loop what its condition reads; what another core or block is to change, wait for with a flag")


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def _digest(variables: Sequence[object], memories: Iterable[Array]) -> bytes:
    """Equal for equal states."""
    sha = hashlib.sha1(usedforsecurity=False)
    sha.update(repr(variables).encode())
    for memory in memories:
        sha.update(np.ascontiguousarray(memory).view(np.uint8).data)
    return sha.digest()
