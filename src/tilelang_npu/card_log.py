"""The log of a pod: the kernels that each card called, where the cards met, and the signals and waits of each core.

Times of a pod follow from it (:mod:`tilelang_npu.pod_timing`). A signal or a wait of a core is identified by its position among
the signals and waits that the core executed in one call of a kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tilelang_npu.card_races import Core

__all__ = ["Act", "ActId", "CardCall", "CardLog", "Change", "Met", "SignalLog", "Word"]

Word = tuple[int, int]
"""A word of the symmetric heap: the rank that has it, and its offset in bytes in the part of this rank."""


class ActId(NamedTuple):
    """Identifies a signal or a wait.

    Attributes:
        rank: the card.
        call: the number of the card's call of a kernel.
        core: the core of the card.
        number: the position among the signals and waits of the core in this call.
    """

    rank: int
    call: int
    core: Core
    number: int


class Signal(NamedTuple):
    """A signal that a core sends.

    Attributes:
        word: the word that it changes.
    """

    word: Word


class WordWait(NamedTuple):
    """A wait of a core for a word of its card.

    Attributes:
        word: the word.
        holds: whether a number in the word ends the wait.
        seen: the number of changes of the word before the core went on in the run.
    """

    word: Word
    holds: Callable[[Any], bool]
    seen: int


class Meeting(NamedTuple):
    """A wait at a barrier of a team inside of a kernel.

    Attributes:
        arrivals: the waits of all cards of the team at this barrier; none for a core that does not take part.
    """

    arrivals: tuple[ActId, ...]


Act = Signal | WordWait | Meeting
"""A signal or a wait of a core."""


class Change(NamedTuple):
    """A change of a word by a signal.

    Attributes:
        signal: the signal.
        before, after: the numbers in the word in the run.
        adds: whether the signal adds to the word; otherwise it sets it.
    """

    signal: ActId
    before: int
    after: int
    adds: bool


@dataclass
class SignalLog:
    """The changes of a word by signals, in the order of the run."""

    changes: list[Change] = field(default_factory=list)

    @property
    def is_signalled_alone(self) -> bool:
        """Whether nothing else changes the word between the signals, such as a store or a put."""
        return all(one.after == two.before for one, two in zip(self.changes, self.changes[1:], strict=False))

    def ended(self, wait: WordWait) -> int:
        """Returns the position of the change that ended a wait in the run: the one that made the condition true and kept it so;
        -1 if there is none."""
        last = wait.seen - 1
        while last >= 0 and not wait.holds(self.changes[last].after):
            last -= 1  # changed again before the core went on
        while last > 0 and wait.holds(self.changes[last].before) and wait.holds(self.changes[last - 1].after):
            last -= 1
        return -1 if last < 0 or wait.holds(self.changes[last].before) else last


@dataclass
class CardCall:
    """A call of a kernel by a card.

    Attributes:
        name: the name of the kernel.
        launch: the result of the call, a ``Launch`` or ``Launches`` of the simulator; None while it runs, and after an error.
        acts: for each core its signals and waits, in program order.
    """

    name: str
    launch: Any = None
    acts: dict[Core, list[Act]] = field(default_factory=dict)


class Met(NamedTuple):
    """Records that a card was at a barrier of all cards between its calls."""


class CardLog:
    """What the cards of a pod did, as far as it matters for the time at which they do it.

    Args:
        ranks: the number of cards.

    Attributes:
        cards: for each card its calls of kernels in order, and ``Met`` where all cards met at a barrier between the calls.
        words: the changes of each word that a signal has changed.
    """

    def __init__(self, ranks: int) -> None:
        self.cards: list[list[CardCall | Met]] = [[] for _ in range(ranks)]
        self.words: dict[Word, SignalLog] = {}
        self._running: list[tuple[int, CardCall] | None] = [None] * ranks
        self._counts = [0] * ranks
        self._arrivals: dict[tuple[int, int], list[ActId]] = {}
        self._lock = threading.Lock()

    def begin_kernel(self, rank: int, name: str) -> None:
        """Records that a kernel of a card begins."""
        call = CardCall(name)
        self._running[rank] = self._counts[rank], call
        self._counts[rank] += 1
        self.cards[rank].append(call)

    def end_kernel(self, rank: int, launch: Any) -> None:
        """Records that the kernel that a card has begun has ended."""
        running = self._running[rank]
        if running is not None:
            running[1].launch = launch
            self._running[rank] = None

    def met(self, rank: int) -> None:
        """Records that a card has been at a barrier of all cards between its calls."""
        self.cards[rank].append(Met())

    def sent(self, rank: int, core: Core, word: Word, before: int, after: int, *, adds: bool) -> None:
        """Records that a core sends a signal; called while no other card changes the word, before it changes.

        Args:
            rank: the card.
            core: the core of the card.
            word: the word that is changed.
            before, after: the number in the word.
            adds: whether the signal adds to the word; otherwise it sets it.
        """
        with self._lock:
            signal = self._append(rank, core, Signal(word))
            if signal is not None:
                self.words.setdefault(word, SignalLog()).changes.append(Change(signal, before, after, adds))

    def waited(self, rank: int, core: Core, word: Word, holds: Callable[[Any], bool]) -> None:
        """Records that a core has waited for a word.

        Args:
            rank: the card.
            core: the core of the card.
            word: the word.
            holds: whether a number in the word ends the wait.
        """
        with self._lock:
            log = self.words.get(word)
            self._append(rank, core, WordWait(word, holds, 0 if log is None else len(log.changes)))

    def arrived(self, rank: int, core: Core, team: int) -> None:
        """Records that a card has reached a barrier of a team inside of a kernel."""
        with self._lock:
            running = self._running[rank]
            if running is not None:
                number, call = running
                self._arrivals.setdefault((team, rank), []).append(ActId(rank, number, core, len(call.acts.get(core, ()))))

    def passed(self, rank: int, core: Core, team: int, members: Sequence[int]) -> None:
        """Records that a core goes on after a barrier of a team.

        Args:
            rank: the card.
            core: the core of the card.
            team: the number of the team.
            members: the cards of the team; none for a core that only executes the statement and does not take part.
        """
        with self._lock:
            turn = len(self._arrivals.get((team, rank), ())) - 1
            came = (self._arrivals.get((team, one), [])[turn:turn + 1] for one in members)
            self._append(rank, core, Meeting(tuple(one for arrival in came for one in arrival)))

    def _append(self, rank: int, core: Core, act: Act) -> ActId | None:
        """Adds a signal or a wait to the card's running call; returns its identity, or None if no compiled kernel runs, since
        the signals of interpreted ones have no times."""
        running = self._running[rank]
        if running is None:
            return None
        number, call = running
        acts = call.acts.setdefault(core, [])
        acts.append(act)
        return ActId(rank, number, core, len(acts) - 1)
