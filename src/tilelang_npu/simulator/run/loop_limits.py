"""Finds loops that do not end: a ``while`` whose state repeats, and loops with too many ops or iterations.

The state of a core consists of its memories and variables, and determines everything that the core does. So a ``while`` loop
whose iteration leaves the state unchanged never ends. The state is compared only in some iterations, after the first
:data:`FIRST` ones, so that short loops take no additional time. A loop that changes the state in each iteration can still be
too long because of wrong data; :data:`MOST_OPS` limits the ops of such loops. A loop whose trip count follows from the kernel's
sizes ends in any case; it can issue as many ops as the memory of this machine can record.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tilelang_npu.errors import TileError
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.target.chip_data import CoreKind

FIRST = 256
"""Iterations of a ``while`` before its state is recorded for the first time; then it is recorded at every power of two."""
PERIOD = 8
"""Iterations after each recording in which the state is compared with the recorded one: the longest period that is found."""
LONG = 1 << 16
"""Iterations of a counted loop between two checks of the number of ops."""
IDLE = 4
"""The limit of the iterations of a core in a block is this times the limit of its ops; it ends loops that issue no ops."""
MOST_OPS = 8_000_000
"""Limit of the ops of a core in one block, checked in ``while`` loops and in loops with a data-dependent trip count."""
BYTES = 256
"""Upper bound of the bytes that the record of one executed op takes; an op that accesses GM takes 100."""
MOST_KNOWN = 1 << 32
"""Limit of the iterations, in a block, of loops whose trip counts do not depend on data: some minutes of empty iterations."""


def recordable_ops() -> int:
    """Returns the number of executed ops whose records fill half of this machine's memory; at least ``MOST_OPS``."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not available, as on Windows
        memory = 8 << 30
    return max(MOST_OPS, memory // 2 // BYTES)


class LoopGuard:
    """Limits the ops and iterations of one core of a launch; generated code calls the methods in its loops.

    Args:
        core: ``AIC`` or ``AIV``.
        most_ops: the limit of the ops of a core in a block, in every loop; if None, the limit depends on the loop.

    Attributes:
        core: the argument ``core``.
        most: the limit of the ops of a core in a block: for loops whose trip count depends on data or, if ``most_ops`` is
            given, for all loops.
    """

    def __init__(self, core: CoreKind, most_ops: int | None = None) -> None:
        self.core = core
        self.most = MOST_OPS if most_ops is None else most_ops
        self._stated = most_ops is not None
        self._part = LONG if most_ops is None else min(LONG, max(1024, most_ops // 16))  # an iteration can issue several ops
        self._events: object = None
        self._ran: int  # the iterations of ``_events``, set by the first check

    def label(self, sub: int) -> str:
        """Returns the name of the core within its block: ``AIC``, ``AIV0``, ``AIV1`` ..."""
        return self.core if self.core == "AIC" else f"AIV{sub}"

    def guarded_range(self, trips: range, events: Sequence[object], block: int, sub: int, known: bool = True) -> Iterable[int]:
        """Returns the values of the induction variable of a counted loop, with a check before the loop and every 65 536 values,
        or fewer if ``most_ops`` is small.

        Args:
            trips: the values of the induction variable.
            events: the events of the core in the block so far.
            block, sub: the block and the sub-block that the core runs.
            known: whether the trip count is independent of data.

        Raises:
            TileError: S306, a check found that the core has issued too many ops, or has run too many iterations.
        """
        self.check(events, block, sub, known=known)
        if trips[self._part:]:
            return self._in_parts(trips, events, block, sub, known)
        self._ran += len(trips)
        return trips

    def _in_parts(self, trips: range, events: Sequence[object], block: int, sub: int, known: bool) -> Iterator[int]:
        while trips:
            yield from trips[:self._part]
            self._ran += self._part
            self.check(events, block, sub, known=known)
            trips = trips[self._part:]

    def check(self, events: Sequence[object], block: int, sub: int, *, known: bool = False) -> None:
        """Checks the numbers of ops and iterations of a core in a block. The arguments are those of ``guarded_range``.

        Raises:
            TileError: S306, the core has issued too many ops, or has run too many iterations.
        """
        if events is not self._events:  # another block or another core
            self._events, self._ran = events, 0
        by_itself = known and not self._stated
        if len(events) > self.most and len(events) > (most := recordable_ops() if by_itself else self.most):
            why = "this machine has no memory for the records of more" if by_itself else "each op is recorded in memory"
            raise TileError(
                f"block {block}: {self.label(sub)} has issued {_spaced(len(events))} ops and has not left this loop",
                code="S306", notes=(f"a core may issue at most {_spaced(most)} ops in a block: {why}",),
                help="check the bound of the loop; if it is meant to be that long, TILELANG_NPU_MAX_OPS=N raises the limit")
        if self._ran > (most := MOST_KNOWN if by_itself else IDLE * self.most):
            raise self.too_long(self._ran, block, sub, most)

    def too_long(self, iterations: int, block: int, sub: int, most: int) -> TileError:
        """Returns the error S306 for a core that has run too many iterations of a loop.

        The limit of iterations is for loops that issue so few ops that the limit of ops does not end them.

        Args:
            iterations: the number of iterations so far.
            block, sub: the block and the sub-block that the core runs.
            most: the limit of iterations.
        """
        return TileError(
            f"block {block}: {self.label(sub)} has run {_spaced(iterations)} iterations and has not left this loop",
            code="S306", notes=(f"a core may run at most {_spaced(most)} iterations in a block",),
            help="check where the loop ends; if it is meant to be that long, TILELANG_NPU_MAX_OPS=N raises the limit")

    def state_of(self, variables: Sequence[object], memories: Sequence[Array]) -> bytes:
        """Returns a digest of the state of a ``while`` loop; the arguments are those of a :class:`WhileMonitor`."""
        return _digest(variables, memories)

    def watch(self, block: int, sub: int) -> WhileMonitor:
        """Returns a monitor for a ``while`` loop that the core is about to run."""
        return WhileMonitor(self, block, sub)


class WhileMonitor:
    """Counts the iterations of a ``while`` loop, and finds out whether its state repeats.

    Generated code calls one of the methods at the end of each iteration.

    Args:
        guard: the limits of the core.
        block, sub: the block and the sub-block that the core runs.
    """

    def __init__(self, guard: LoopGuard, block: int, sub: int) -> None:
        self._guard, self._block, self._sub = guard, block, sub
        self._count = 0
        self._looked = 0
        self._kept = b""

    def __call__(self, events: Sequence[object], variables: Sequence[object], memories: Sequence[Array]) -> None:
        """Counts an iteration, and in some iterations compares the state of the loop with the state in an earlier iteration.

        Args:
            events: the events of the core in the block so far.
            variables: the loop-carried values, and the scalar storage that the loop writes.
            memories: the bytes of the memories that the loop writes and from which the scalar unit reads.

        Raises:
            TileError: S305, the state is that of an earlier iteration, so the loop never ends; S306, the core has issued too
                many ops.
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
                "an iteration changes nothing" if period == 1 else f"its state repeats every {period} iterations")
        elif self._count % LONG == 0:
            self._guard.check(events, self._block, self._sub)
            self._check_count()

    def passed(self) -> None:
        """Counts an iteration of a loop whose state is not known.

        Raises:
            TileError: S306, the loop has run too many iterations.
        """
        self._count += 1
        self._check_count()

    def _check_count(self) -> None:
        if self._count > (most := IDLE * self._guard.most):
            raise self._guard.too_long(self._count, self._block, self._sub, most)

    def never(self) -> None:
        """Raises the error for a loop in which no op writes an input of the loop's condition.

        Generated code calls it at the end of the first iteration.

        Raises:
            TileError: S305, in any case.
        """
        self._count = 1
        raise self._endless("no op in it writes a value that its condition reads")

    def _endless(self, why: str) -> TileError:
        return TileError(
            f"block {self._block}: {self._guard.label(self._sub)} never leaves this loop: {why}", code="S305",
            notes=(f"S of {self._guard.label(self._sub)}  iteration {self._count - 1}  waits for its own condition to change",),
            help="change a value in the loop that its condition reads; to wait for another core or block, use a flag")


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def _digest(variables: Sequence[object], memories: Iterable[Array]) -> bytes:
    """Returns a digest of the state of a loop: its variables, and the bytes of the memories that it depends on."""
    sha = hashlib.sha1(usedforsecurity=False)
    sha.update(repr(variables).encode())
    for memory in memories:
        sha.update(np.ascontiguousarray(memory).view(np.uint8).data)
    return sha.digest()
