"""Signals between the cards of a pod: a card sets or adds to a word of another card's memory, and the other card waits for it.

They follow CANN's shmem (``aclshmemx_signal_op``, ``aclshmem_signal_wait_until``, ``aclshmem_quiet``, ``aclshmem_barrier``). A
core that waits lets the other cores of its card run. If no core of the card can go on, the thread waits for the other cards
(:func:`wait_for_cards`), and finds out if they wait for each other.
"""

from __future__ import annotations

import operator
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.card_races import Core
from tilelang_npu.errors import Location, TileError
from tilelang_npu.symmetric_heap import (
    SymmetricHeap,
    address_of,
    byte_span,
    card_of_word,
    current_heap,
    is_rehearsed,
    part_of,
    peer_word,
    rehearsal,
)

__all__ = ["COMPARISONS", "SIGNAL_OPS", "BarrierWait", "CardWait", "PollWait", "SignalWait", "complete_puts", "finish_puts",
           "have_polled", "pass_core_wait", "send_signal", "wait_for_cards"]

Array = NDArray[Any]
SIGNAL_OPS = ("set", "add")
"""What ``T.shmem_signal_op`` does, by the number that states it."""
COMPARISONS = (("==", operator.eq), ("!=", operator.ne), (">", operator.gt), (">=", operator.ge), ("<", operator.lt),
               ("<=", operator.le))
"""The comparisons of ``T.shmem_signal_wait_until``, by the number that states them: the text, and the function."""
PATIENCE = 10.0
"""Seconds for which a card that hangs waits for the other cards to describe their waits."""


@dataclass
class _Foreseen:
    """What the cores of a card would do after the waits in which they hang.

    Attributes:
        signals: the signals that they would send: the word, as the rank that has it and its offset, and the line.
        puts: what they would write to other cards: the rank, the offsets of the first byte and after the last one, and the
            line.
    """

    signals: list[tuple[tuple[int, int], Location | None]] = field(default_factory=list)
    puts: list[tuple[int, int, int, Location | None]] = field(default_factory=list)


_FORESEEN: ContextVar[_Foreseen | None] = ContextVar("tilelang_npu_foreseen_signals", default=None)


@contextmanager
def _foreseeing() -> Iterator[_Foreseen]:
    """While the context is open, kernels of this thread do not wait for signals, and the signals that they send are listed."""
    made = _Foreseen()
    before = _FORESEEN.set(made)
    try:
        yield made
    finally:
        _FORESEEN.reset(before)


def send_signal(word: Array, value: int, adds: bool, rank: int, location: Location | None = None, core: Core = None) -> None:
    """Sets a word in another card's memory, or adds to it, and thereby tells the card what this one has done.

    Args:
        word: the word of this card that corresponds to the other card's, an array of one element of 4 bytes.
        value: the number, as int32.
        adds: whether the number is added to the word; otherwise the word is set to it.
        rank: the number of the other card, or of this one.
        location: the line, for messages.
        core: the core that sends the signal.

    Raises:
        TileError: T430, the word is not on the symmetric heap; T431, the pod does not have the rank.
    """
    foreseen = _FORESEEN.get()
    if foreseen is None and is_rehearsed():
        return
    found = peer_word(word, rank)
    if foreseen is not None:
        foreseen.signals.append((card_of_word(found), location))
        return
    place = part_of(address_of(found))
    assert place is not None
    memory = place[0]
    own = card_of_word(word)[0]
    with memory.exclusive():
        if memory.races is not None:
            memory.races.release(own, ("signal", place[1], place[2]), core, adds=adds)
        number = found.view(np.int32)
        before = np.int32(number.item())
        with np.errstate(over="ignore"):
            after = before + np.int32(value) if adds else np.int64(value).astype(np.int32)
        if memory.log is not None:  # before another card can see the number
            memory.log.sent(own, core, (place[1], place[2]), int(before), int(after), adds=adds)
        number[...] = after


def _acting(heap: SymmetricHeap | None) -> SymmetricHeap | None:
    """Returns a card's membership in its pod if the card really signals and waits; None in a rehearsal, without a pod, and
    while the simulator foresees what the card would do."""
    return None if is_rehearsed() or _FORESEEN.get() is not None else heap


def complete_puts(core: Core = None) -> None:
    """Tells the race detector that a core has waited until its puts have ended (``T.shmem_quiet``, ``T.shmem_fence``)."""
    heap = _acting(current_heap())
    if heap is not None and heap.memory.races is not None:
        heap.memory.races.complete(heap.rank, core)


def finish_puts(core: Core = None) -> None:
    """Tells the race detector that a core has waited until its pipes are idle, in a kernel that polls: its puts have ended.

    CANN's ``aclshmem_quiet`` consists of such a barrier, and of a flush of the data cache, which puts do not use.
    """
    heap = _acting(current_heap())
    if heap is not None and heap.memory.races is not None:
        heap.memory.races.complete(heap.rank, core, logs=False)


def have_polled(array: Array, core: Core = None) -> None:
    """Tells the race detector that a core has read an array to find out whether another card has written it.

    What other cards have done before the puts whose values it has read is ordered before what the core does next.
    """
    heap = _acting(current_heap())
    if heap is not None and heap.memory.races is not None:
        heap.memory.races.acquire_puts(heap.rank, array, core)


def pass_core_wait(core: Core) -> None:
    """Tells the race detector that a core has waited for other cores of its card: what is ordered before them is before it."""
    heap = _acting(current_heap())
    if heap is not None and heap.memory.races is not None:
        heap.memory.races.pass_core_wait(heap.rank, core)


class CardWait(ABC):
    """A wait of a core for other cards.

    Args:
        location: the line of the wait.
        core: the core that waits.
    """

    def __init__(self, location: Location | None, core: Core) -> None:
        self.location, self.core = location, core

    def ready(self) -> bool:
        """Whether the core can go on. It always can in a rehearsal."""
        return is_rehearsed() or _FORESEEN.get() is not None or self._is_over()

    @abstractmethod
    def finish(self) -> None:
        """Called when the core goes on: states what the wait has ordered."""

    @abstractmethod
    def describe(self) -> str:
        """Returns what the core waits for, for messages."""

    def heap(self) -> SymmetricHeap | None:
        """Returns the membership of the card that waits."""
        return current_heap()

    @abstractmethod
    def _is_over(self) -> bool:
        """Whether the other cards have done what the core waits for."""


class SignalWait(CardWait):
    """A wait until a word of this card compares with a number as stated (``T.shmem_signal_wait_until``).

    Args:
        word: the word, an array of one element of 4 bytes.
        comparison: the position of the comparison in ``COMPARISONS``.
        value: the number, as int32.
        name: the name of the tensor, for messages.
        location, core: as for :class:`CardWait`.

    Raises:
        TileError: T430, the word is not on the symmetric heap.
    """

    def __init__(self, word: Array, comparison: int, value: int, name: str, location: Location | None = None,
                 core: Core = None) -> None:
        super().__init__(location, core)
        self._number = word.view(np.int32)
        self._text, self._compare = COMPARISONS[comparison]
        self._value, self._name = int(np.int64(value).astype(np.int32)), name
        self.word = (0, 0) if is_rehearsed() else card_of_word(word)

    def finish(self) -> None:
        heap = _acting(self.heap())
        if heap is None:
            return
        if heap.memory.races is not None:
            heap.memory.races.acquire(heap.rank, ("signal", *self.word), self.core)
        if heap.memory.log is not None:
            heap.memory.log.waited(heap.rank, self.core, self.word, lambda number: bool(self._compare(number, self._value)))

    def describe(self) -> str:
        return f"{self._name} {self._text} {self._value} (it is {self._number.item()})"

    def _is_over(self) -> bool:
        return bool(self._compare(self._number.item(), self._value))


class PollWait(CardWait):
    """A ``while`` loop that polls a tensor on the symmetric heap.

    If an iteration has changed no state of the core, the core waits until an element that the iteration has read changes.
    Otherwise, for example if the loop counts its iterations, the next iteration begins at once. The executed code calls
    :meth:`read` before each read of a tensor in the loop, :meth:`have_read` after it, :meth:`iterated` at the end of each
    iteration, and :meth:`begin` before the next one; it waits between the last two if :attr:`shared` is true.

    Args:
        acts: whether an iteration writes to tensors or other cards, so that the next one can have an effect although it reads
            the same.
        location, core: as for :class:`CardWait`.

    Attributes:
        acts: the argument ``acts``.
        shared: whether the loop has read a tensor on the symmetric heap.
    """

    def __init__(self, acts: bool, location: Location | None = None, core: Core = None) -> None:
        super().__init__(location, core)
        self.acts = acts
        self.shared = False
        self._read: list[tuple[Array, bytes]] = []
        self._name = "a tensor"
        self._state: object = None
        self._repeats = False

    def read(self, array: Array, name: str) -> None:
        """Called before a read of an array: if it is on the symmetric heap, remembers its elements."""
        if array.size and (part_of(address_of(array)) is not None or (is_rehearsed() and current_heap() is not None)):
            self.shared, self._name = True, name
            self._read.append((array, array.tobytes()))

    def have_read(self, array: Array) -> None:
        """Called after a read of an array."""
        have_polled(array, self.core)

    def iterated(self, state: object) -> bool:
        """Called at the end of an iteration, with all that decides what the next one does; returns :attr:`shared`."""
        self._repeats = self.shared and not self.acts and state == self._state
        self._state = state
        return self.shared

    def begin(self) -> None:
        """Called before an iteration."""
        self._read.clear()

    def is_given_up(self) -> bool:
        """Whether the loop is left although its condition holds: in a rehearsal, in which other cards write nothing."""
        return _FORESEEN.get() is not None or (is_rehearsed() and self._repeats)

    def finish(self) -> None:
        """Does nothing: each read has ordered what it has read."""

    def describe(self) -> str:
        return f"an element of {self._name} to change"

    def is_ended_by(self, rank: int, start: int, end: int) -> bool:
        """Whether a write of bytes ``start`` to ``end`` of a rank's part of the heap can end the wait."""
        for array, _ in self._read:
            found = part_of(address_of(array))
            if found is not None and found[1] == rank and start < found[2] + byte_span(array) and found[2] < end:
                return True
        return False

    def _is_over(self) -> bool:
        return not self._repeats or any(array.tobytes() != before for array, before in self._read)


class BarrierWait(CardWait):
    """A wait until all members of a team have reached a barrier inside of a kernel (``T.shmem_barrier``).

    Args:
        team: the number of the team.
        takes_part: whether the core is the one that meets the other cards; for other cores the wait is over at once.
        location, core: as for :class:`CardWait`.

    Raises:
        TileError: T431, this card has no such team; T434, there is no pod.
    """

    def __init__(self, team: int, takes_part: bool, location: Location | None = None, core: Core = None) -> None:
        super().__init__(location, core)
        self._missing: Callable[[], list[int]] = list
        self._team = team
        self._members: tuple[int, ...] = ()
        if not takes_part or is_rehearsed() or _FORESEEN.get() is not None:
            return
        heap = current_heap()
        if heap is None:
            raise TileError("a barrier of cards is called without a pod", code="T434", location=location,
                            help="call the kernel in pods.run, or after shmem.aclshmem_init")
        if team not in heap.teams:
            raise TileError(f"rank {heap.rank} has no team {team}", code="T431", location=location,
                            help="pass a number that team_split_strided has returned on this rank; 0 is the team of all ranks")
        self._members = heap.teams[team]
        races = heap.memory.races
        if races is not None:
            races.complete(heap.rank)
            races.release(heap.rank, ("barrier", team), adds=True)
        if heap.memory.log is not None:
            heap.memory.log.arrived(heap.rank, core, team)
        self._missing = heap.arrive(team, self._members)

    def finish(self) -> None:
        heap = _acting(current_heap())
        if heap is None:
            return
        if heap.memory.log is not None:
            heap.memory.log.passed(heap.rank, self.core, self._team, self._members)
        if heap.memory.races is None:
            return
        if self._members:
            heap.memory.races.acquire(heap.rank, ("barrier", self._team), self.core)
        else:
            heap.memory.races.pass_core_wait(heap.rank, self.core)

    def describe(self) -> str:
        return f"rank {', '.join(map(str, self._missing()))} to reach the barrier"

    def _is_over(self) -> bool:
        return not self._missing()


@dataclass(frozen=True)
class _Hung:
    """How a card hangs: its waits, and what it would signal and put afterwards."""

    waits: tuple[CardWait, ...]
    signals: tuple[tuple[tuple[int, int], Location | None], ...]
    puts: tuple[tuple[int, int, int, Location | None], ...] = ()

    def line_that_ends(self, wait: CardWait) -> tuple[Location | None] | None:
        """Returns the line, in a tuple, at which the card would end another card's wait; None if it would not."""
        if isinstance(wait, SignalWait):
            return next(((line,) for word, line in self.signals if word == wait.word), None)
        if isinstance(wait, PollWait):
            return next(((line,) for rank, start, end, line in self.puts if wait.is_ended_by(rank, start, end)), None)
        return None


def wait_for_cards(waits: Sequence[CardWait], go_on: Callable[[], None] = lambda: None) -> None:
    """Waits until another card brings one of the waits to its end; called if no core of this card can go on.

    Args:
        waits: the waits of the cores of this card.
        go_on: executes the cores as if their waits were over, so that the signals are known that they would send.

    Raises:
        TileError: S308, all cards wait, or a card waits for longer than the timeout.
    """
    heap = next((heap for heap in (wait.heap() for wait in waits) if heap is not None), None)
    first = waits[0]
    if heap is None:
        raise TileError(f"a kernel waits for {first.describe()}, and there is no other card", code="S308",
                        location=first.location, help="call the kernel in pods.run, or after shmem.aclshmem_init")
    line = 0 if first.location is None else first.location.line
    outcome = heap.wait_until(lambda: any(wait.ready() for wait in waits), line)
    if not outcome:
        return
    with _foreseeing() as foreseen, rehearsal(puts=foreseen.puts):
        go_on()
    heap.memory.hung[heap.rank] = _Hung(tuple(waits), tuple(foreseen.signals), tuple(foreseen.puts))
    raise _diagnosis(heap, first, outcome)


def _diagnosis(heap: SymmetricHeap, wait: CardWait, outcome: str) -> TileError:
    """Returns the error of a card that hangs: the cycle of waits if there is one, and what the other cards do."""
    hung = _all_hung(heap) if outcome == "deadlock" else {}
    cycle = _cycle(hung)
    if cycle:
        notes = []
        for place, (rank, waiting, _) in enumerate(cycle):
            setter, line = cycle[(place + 1) % len(cycle)][0], cycle[place][2]
            does = "write" if isinstance(waiting, PollWait) else "set"
            sets = f"which rank {setter} would {does}" + ("" if line is None else f" at {line.shown_line}")
            notes.append(f"rank {rank} waits for {waiting.describe()}{_line(waiting)}, {sets}")
        ranks = " and ".join(f"rank {rank}" for rank in sorted(rank for rank, _, _ in cycle))
        polls = any(isinstance(waiting, PollWait) for _, waiting, _ in cycle)
        what, sends = ("puts", "put the data") if polls else ("signals", "send the signal")
        if len(cycle) == 1:
            return TileError(f"{ranks} waits for {what} of its own that come only afterwards", code="S308",
                             location=cycle[0][1].location, notes=notes,
                             help=f"{sends} before the wait; compare the number that it needs with what all cores send")
        return TileError(f"{ranks} wait for each other's {what}", code="S308", location=cycle[0][1].location, notes=notes,
                         help=f"let one of the cards {sends} before it waits")
    why = ("no card that runs can end this wait" if outcome == "deadlock" else
           f"it did not end within {heap.timeout:g} s")
    notes = [f"rank {rank} waits for {other.describe()}{_line(other)}" for rank, found in sorted(hung.items())
             if rank != heap.rank for other in found.waits]
    notes += [f"rank {rank} {heap.state_of(rank)}" for rank in range(heap.ranks) if rank != heap.rank and rank not in hung]
    advice = ("let a card put the value that the loop waits for, with the rank of the card that waits; compare the tensor and "
              "the offset of both" if isinstance(wait, PollWait) else
              "let a card send this signal, with the rank of the card that waits; compare the tensor, the offset and the "
              "number of both")
    return TileError(f"rank {heap.rank} waits for {wait.describe()}, and {why}", code="S308", location=wait.location,
                     notes=notes, help=advice)


def _line(wait: CardWait) -> str:
    return "" if wait.location is None else f" at {wait.location.shown_line}"


def _all_hung(heap: SymmetricHeap) -> dict[int, _Hung]:
    """Returns how the cards hang that are threads of this process, after the others have had time to say so too."""
    end = time.monotonic() + PATIENCE
    while heap.memory.file is None and time.monotonic() < end and heap.ranks_in_signals() - heap.memory.hung.keys():
        time.sleep(1e-3)
    return {rank: found for rank, found in heap.memory.hung.items() if isinstance(found, _Hung)}


def _cycle(hung: dict[int, _Hung]) -> list[tuple[int, CardWait, Location | None]]:
    """Returns a cycle of waits: each rank with the wait in which it hangs, and the line at which the next rank would end it.

    It begins with the smallest rank. Empty if there is no cycle.
    """
    nexts: dict[int, tuple[int, CardWait, Location | None]] = {}
    for rank, found in sorted(hung.items()):
        for wait in found.waits:
            setters = [(other, line) for other, one in sorted(hung.items()) if (line := one.line_that_ends(wait)) is not None]
            if setters:
                nexts[rank] = (setters[0][0], wait, setters[0][1][0])
                break
    for start in sorted(nexts):
        path: list[int] = []
        rank = start
        while rank in nexts and rank not in path:
            path.append(rank)
            rank = nexts[rank][0]
        if rank == start and path:
            return [(one, nexts[one][1], nexts[one][2]) for one in path]
    return []
