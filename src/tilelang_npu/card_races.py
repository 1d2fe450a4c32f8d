"""Finds races between the cards of a pod: bytes that one card writes and another one accesses, where nothing orders the two.

Two accesses of different cards are ordered by a barrier of the cards, or by a signal: what a card has done before it sets a
signal happens before what another card does after it has waited for that signal. A put is an exception, because it ends at an
unknown time: it happens before a signal only if the card called ``T.shmem_quiet`` or ``T.shmem_fence`` between, or the kernel
with the put has returned.

The order is computed with vector clocks. A clock maps actors to times; the actors are each card, and, for the puts that are in
flight, each core of each card. A card is one actor: its cores are taken to be in the order in which the simulator ran them. For
each byte of the symmetric heap, the detector keeps marks: the last write by any card, and the last read, put and addition of
each card.

An access is compared with the marks when it is recorded, so that a race is reported before its consequences. The accesses of a
kernel to its own card are recorded only when the kernel has returned, and later accesses of other cards may have replaced the
marks by then. Therefore all accesses are compared once more at each barrier of all cards and at the end, sorted so that an
access follows everything that happens before it. In this order the last write of a byte is enough to find a race (Flanagan and
Freund, "FastTrack", 2009), whichever thread ran first.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.errors import Location, TileError

__all__ = ["CardRaces", "Clock", "Core"]

Core = Hashable
"""A core of a card: any object that tells it apart from the other cores of the card. None is the host."""
Clock = Mapping[Hashable, int]
"""The latest time of each actor that happens before an access. A card is an actor by its rank, and the puts of one of its cores
are one by the pair of rank and core."""


@dataclass(frozen=True)
class _Access:
    """An access that bytes are marked with.

    Attributes:
        rank: the card that makes the access.
        actor, time: the actor and its time; a later access is ordered if its clock has at least this time of the actor.
        issued: the card's own time when it issued the access.
        clock: what happens before the access.
        writes: whether the card writes the bytes.
        adds: whether it adds to them, in any order with other additions.
        location: the line; None if it is not known.
        read_by: for each card that has found the value of this put by polling, the card's time since then: its later accesses
            are ordered after the put.
    """

    rank: int
    actor: Hashable
    time: int
    issued: int
    clock: Clock
    writes: bool
    adds: bool
    location: Location | None
    read_by: dict[int, int] = field(default_factory=dict, compare=False)

    @property
    def kind(self) -> Hashable:
        """What the bytes are marked with: accesses of one kind replace each other."""
        if self.adds or self.actor != self.rank:
            return ("adds" if self.adds else "puts"), self.rank
        return "writes" if self.writes else ("reads", self.rank)

    @property
    def depth(self) -> int:
        """A number that is larger than that of each access that happens before this one."""
        return self.issued + 1 + sum(time + 1 for actor, time in self.clock.items() if actor != self.rank)

    def is_ordered_with(self, other: _Access) -> bool:
        """Whether one of the accesses happens before the other, or their order does not matter."""
        return (self.rank == other.rank or (self.adds and other.adds) or self.clock.get(other.actor, -1) >= other.time
                or other.clock.get(self.actor, -1) >= self.time or other.issued >= self.read_by.get(other.rank, _NEVER)
                or self.issued >= other.read_by.get(self.rank, _NEVER))


class CardRaces:
    """The accesses of all cards since the last barrier of all of them.

    Args:
        data: the bytes of the symmetric heap, one row for each rank.
    """

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._start, self._part = int(data.ctypes.data), data.shape[1]
        self._size = data.size
        self._marks: dict[Hashable, NDArray[np.int32]] = {}
        self._noted: list[tuple[_Access, NDArray[Any]]] = []
        self._times = [0] * len(data)
        self._known: list[dict[Hashable, int]] = [{} for _ in data]
        self._puts: dict[tuple[int, Core], int] = {}
        self._released: dict[Hashable, dict[Hashable, int]] = {}
        self._logs: dict[tuple[int, Core], list[tuple[Clock, int]]] = {}
        self._lock = threading.Lock()

    # -- order ---------------------------------------------------------------------------------------------------------

    def release(self, rank: int, what: Hashable, core: Core = None, *, adds: bool = False) -> None:
        """Records that a card sets a signal, or reaches a barrier.

        Args:
            rank: the card.
            what: the signal or the barrier.
            core: the core of the card.
            adds: whether a wait for it is also ordered after the earlier signals of its kind; otherwise only after this one.
        """
        with self._lock:
            sent = {**self._known[rank], rank: self._times[rank]}
            if adds:
                _join(sent, self._released.get(what, {}))
            self._released[what] = sent
            self._times[rank] += 1
            self._log(rank, core)

    def acquire(self, rank: int, what: Hashable, core: Core = None) -> None:
        """Records that a card has waited for a signal or a barrier, and is ordered after what the senders did before."""
        with self._lock:
            _join(self._known[rank], self._released.get(what, {}))
            self._log(rank, core)

    def acquire_puts(self, rank: int, array: NDArray[Any], core: Core = None) -> None:
        """Records that a card has polled: it is ordered after what other cards did before the puts that it has read.

        Args:
            rank: the card.
            array: the bytes that it has read, as an array that lies in the heap.
            core: the core of the card.
        """
        with self._lock:
            self._times[rank] += 1
            for kind in list(self._marks) if self._holds(array) else ():
                if isinstance(kind, tuple) and kind[0] in ("puts", "adds") and kind[1] != rank:
                    for number in np.flatnonzero(np.bincount(self._view(kind, array).reshape(-1))):
                        if number:
                            access = self._noted[number - 1][0]
                            access.read_by.setdefault(rank, self._times[rank])
                            _join(self._known[rank], {**access.clock, access.rank: access.issued})
            self._log(rank, core)

    def _holds(self, array: NDArray[Any]) -> bool:
        return bool(array.size) and 0 <= int(array.__array_interface__["data"][0]) - self._start < self._size

    def complete(self, rank: int, core: Core = None, *, logs: bool = True) -> None:
        """Records that the puts of a core have ended; without a core, those of all cores of the card.

        Args:
            rank: the card.
            core: the core.
            logs: whether it counts among the steps of :meth:`clock_after`.
        """
        with self._lock:
            for (card, one), epoch in self._puts.items():
                if card == rank and core in (None, one):
                    self._known[rank][card, one] = epoch
                    self._puts[card, one] = epoch + 1
            if logs:
                self._log(rank, core)

    def pass_core_wait(self, rank: int, core: Core) -> None:
        """Records that a core has waited for other cores of its card."""
        with self._lock:
            self._log(rank, core)

    def begin_kernel(self, rank: int) -> None:
        """Records that a kernel of a card begins."""
        with self._lock:
            for key in [key for key in self._logs if key[0] == rank]:
                del self._logs[key]
            self._logs[rank, None] = [({**self._known[rank]}, self._times[rank])]

    def clock_after(self, rank: int, core: Core, steps: int) -> tuple[Clock, int]:
        """Returns the clock of a core of the running kernel, and the card's time, after the core had executed a number of
        signals, waits (for cards or for cores) and calls of ``quiet``."""
        log = self._logs.get((rank, core), [])
        if not steps or not log:
            return self._logs.get((rank, None), [({}, 0)])[0]
        return log[min(steps, len(log)) - 1]

    def clear(self) -> None:
        """Compares all accesses in their order, and forgets them.

        One card calls it between two barriers of all cards; it is also called after the last card has ended.

        Raises:
            TileError: S231 and S232, as :meth:`note`.
        """
        with self._lock:
            self._unmark()
            noted, self._noted = self._noted, []
            for access, array in sorted(noted, key=lambda one: (one[0].depth, one[0].rank)):
                self._compare(access, array)
                self._noted.append((access, array))
            self._unmark()
            self._noted.clear()
            self._released.clear()

    def _log(self, rank: int, core: Core) -> None:
        if core is not None:
            self._logs.setdefault((rank, core), []).append(({**self._known[rank]}, self._times[rank]))

    # -- accesses ------------------------------------------------------------------------------------------------------

    def note(self, rank: int, array: NDArray[Any], *, writes: bool, location: Location | None = None, core: Core = None,
             when: tuple[Clock, int] | None = None, adds: bool = False) -> None:
        """Records an access of a card, in any card's part of the heap.

        Args:
            rank: the card that makes the access.
            array: the bytes, as an array that lies in the heap.
            writes: whether the card writes them; otherwise it reads them.
            location: the line of the access; None if it is not known.
            core: for a put, the core that makes it: its data arrive at an unknown time. None for an access that has ended.
            when: the card's clock and its own time at the access; None for now.
            adds: whether the card adds to the bytes, without interruption by other cards.

        Raises:
            TileError: S231, another card writes the bytes, or reads bytes that this card writes, and nothing orders the two;
                S232, a signal would order them if the put had ended before it.
        """
        if not array.size:
            return
        with self._lock:
            clock, time = ({**self._known[rank]}, self._times[rank]) if when is None else when
            actor: Hashable = rank
            stamp = time
            if core is not None:
                actor, stamp = (rank, core), self._puts.setdefault((rank, core), 0)
            access = _Access(rank, actor, stamp, time, clock, writes, adds, location)
            self._compare(access, array)
            self._noted.append((access, array))

    def _compare(self, access: _Access, array: NDArray[Any]) -> None:
        """Compares an access with the marks of its bytes, and marks them with it: it is the next of the noted accesses."""
        for kind in list(self._marks):
            if access.writes or not isinstance(kind, tuple) or kind[0] != "reads":
                self._look(access, array, self._view(kind, array))
        self._view(access.kind, array)[...] = len(self._noted) + 1

    def _unmark(self) -> None:
        """Removes the marks of all noted accesses."""
        for access, array in self._noted:
            self._view(access.kind, array)[...] = 0

    def _view(self, kind: Hashable, array: NDArray[Any]) -> NDArray[np.int32]:
        """Returns the marks of the bytes of an array for one kind of accesses."""
        marks = self._marks.get(kind)
        if marks is None:
            marks = self._marks[kind] = np.zeros(self._size, np.int32)  # takes memory only where it is written
        offset = int(array.__array_interface__["data"][0]) - self._start
        steps = (*(4 * step for step in array.strides), 4)
        return np.ndarray((*array.shape, array.itemsize), np.int32, marks, 4 * offset, steps)

    def _look(self, access: _Access, array: NDArray[Any], marks: NDArray[np.int32]) -> None:
        """Raises an error if the bytes are marked with an access of another card that is not ordered with this one."""
        for number in np.flatnonzero(np.bincount(marks.reshape(-1))):  # np.unique would import numpy.ma, in any thread
            other = self._noted[number - 1][0] if number else access
            if access.is_ordered_with(other):
                continue
            count = int((marks == number).sum())
            holder = (int(array.__array_interface__["data"][0]) - self._start) // self._part
            # In the order of the ranks, so that the message does not depend on which thread was first.
            one, two = sorted((access, other), key=lambda found: found.rank)
            does, then = ("writes" if found.writes else "reads" for found in (one, two))
            for put, reader in ((one, two), (two, one)):
                if put.actor != put.rank and reader.clock.get(put.rank, -1) >= put.issued:
                    raise TileError(
                        f"rank {put.rank} puts {count} bytes of rank {holder} that rank {reader.rank} "
                        f"{'writes' if reader.writes else 'reads'} after a signal, and the put may end after the signal",
                        code="S232", location=put.location,
                        notes=_at(reader, "writes" if reader.writes else "reads"),
                        help="call T.shmem_quiet() or T.shmem_fence() between the put and the signal")
            raise TileError(f"rank {one.rank} {does} and rank {two.rank} {then} the same {count} bytes of rank {holder}, and "
                            "nothing orders the two", code="S231", location=one.location, notes=_at(two, then), help=_HELP)


_NEVER = 1 << 62
"""A time after all others."""


def _at(access: _Access, does: str) -> tuple[str, ...]:
    return () if access.location is None else (f"rank {access.rank} {does} them at {access.location.shown_line}",)


def _join(known: dict[Hashable, int], other: Clock) -> None:
    for actor, time in other.items():
        if known.get(actor, -1) < time:
            known[actor] = time


_HELP = "let all cards call barrier() between the two launches, or let one card signal the other one between the two accesses"
