"""Limits for loops that do not end: a ``while`` whose state repeats, and a core that issues ops without end.

The behaviour of a core follows from its memories and variables alone. So a ``while`` iteration that leaves all of them
unchanged repeats for ever. The state is compared only now and then, after :data:`FIRST` iterations, so short loops cost
nothing. A loop that changes something in each iteration may still be too long because of wrong data; :data:`MOST_OPS` limits
it. A loop whose trip count follows from the kernel's sizes ends by itself; it may issue as many ops as the memory of this
machine can record.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.simulator.machine.memory import Array

FIRST = 256
"""Iterations of a ``while`` before its state is compared for the first time; then at every power of two."""
PERIOD = 8
"""Iterations after that in which the same state is looked for."""
LONG = 1 << 16
"""Iterations of a counted loop between two checks of the number of ops."""
IDLE = 4
"""Iterations of counted loops per op that a core may issue: a limit for loops that issue no ops."""
MOST_OPS = 8_000_000
"""Limit of the ops of a core in one block, checked in a ``while`` and in loops with a data-dependent trip count."""
BYTES = 256
"""Upper bound of the bytes that record an op; an op that accesses GM takes 100."""
MOST_KNOWN = 1 << 32
"""Limit of the iterations of loops with known trip counts in a block: some minutes of empty iterations."""


def recordable_ops() -> int:
    """Returns the number of ops whose records fill half of this machine's memory."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not available, as on Windows
        memory = 8 << 30
    return max(MOST_OPS, memory // 2 // BYTES)


class LoopGuard:
    """The checks that generated code calls while one core of a launch runs it.

    Args:
        core: ``AIC`` or ``AIV``.
        most_ops: limit of the ops of a core in a block, in every loop; with None the limit depends on the loop.
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

    def guarded_range(self, trips: range, events: Sequence[object], block: int, sub: int, known: bool = True) -> Iterable[int]:
        """Returns the iterations of a counted loop.

        Args:
            trips: its range.
            events: the ops of the core so far.
            block, sub: the core.
            known: whether the trip count is independent of data.

        Raises:
            TileError: S306, at the start or after each 65 536 iterations, the core has issued too many ops, or has run too many
                iterations.
        """
        if events is not self._events:  # another block or another core
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
        """Raises S306 if a core has issued too many ops, or has run too many iterations."""
        by_itself = known and not self._stated
        if len(events) > self.most and len(events) > (most := recordable_ops() if by_itself else self.most):
            why = "more do not fit into the memory of this machine" if by_itself else "as each of them is kept"
            raise TileError(
                f"block {block}: {self.label(sub)} has issued {_spaced(len(events))} ops and is in this loop still",
                code="S306", notes=(f"a core may issue {_spaced(most)} in a block, {why}",),
                help="check the bound of the loop; if it is meant to be that long, TILELANG_NPU_MAX_OPS=N raises the limit")
        if self._ran > (most := MOST_KNOWN if by_itself else IDLE * self.most):
            raise self.too_long(self._ran, block, sub, most)

    def too_long(self, iterations: int, block: int, sub: int, most: int) -> TileError:
        """Returns the error S306 for a core that issues few ops or none."""
        return TileError(
            f"block {block}: {self.label(sub)} has gone through {_spaced(iterations)} iterations and is in this loop still",
            code="S306", notes=(f"a core may go through {_spaced(most)} in a block",),
            help="check where the loop ends; if it is meant to be that long, TILELANG_NPU_MAX_OPS=N raises the limit")

    def watch(self, block: int, sub: int) -> WhileMonitor:
        """Returns a monitor for a ``while`` that starts."""
        return WhileMonitor(self, block, sub)


class WhileMonitor:
    """Counts the iterations of a ``while`` and compares its state."""

    def __init__(self, guard: LoopGuard, block: int, sub: int) -> None:
        self._guard, self._block, self._sub = guard, block, sub
        self._count = 0
        self._looked = 0
        self._kept = b""

    def __call__(self, events: Sequence[object], variables: Sequence[object], memories: Sequence[Array]) -> None:
        """Ends an iteration.

        Args:
            events: the ops of the core so far.
            variables: loop-carried values and scalar storage.
            memories: bytes that the loop writes and reads numbers from.

        Raises:
            TileError: S305, the state repeats; S306, the core has issued too many ops.
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
        """Ends an iteration whose state is not known.

        Raises:
            TileError: S306, there were too many.
        """
        self._count += 1
        self._check_count()

    def _check_count(self) -> None:
        if self._count > (most := IDLE * self._guard.most):
            raise self._guard.too_long(self._count, self._block, self._sub, most)

    def never(self) -> None:
        """Ends the first iteration of a loop in which no op writes the inputs of its condition.

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
    """Returns a digest of the state."""
    sha = hashlib.sha1(usedforsecurity=False)
    sha.update(repr(variables).encode())
    for memory in memories:
        sha.update(np.ascontiguousarray(memory).view(np.uint8).data)
    return sha.digest()
