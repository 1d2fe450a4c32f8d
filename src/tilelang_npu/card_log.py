"""The log of a pod: the kernels that each card called, where the cards met, and what ended each wait for other cards.

Times of a pod follow from it (:mod:`tilelang_npu.pod_timing`). A signal or a wait of a core is identified by its position among
the signals and waits that the core executed in one call of a kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from tilelang_npu.card_races import Core

if TYPE_CHECKING:
    from tilelang_npu.simulator import AnyLaunch

__all__ = ["Act", "CardCall", "CardLog", "Cause"]

Word = tuple[int, int]
"""A word of the symmetric heap: the rank that has it, and its offset in bytes in the part of this rank."""
MET = "met"
"""The element of a card's list of calls where all cards have met at a barrier outside of kernels."""


class Cause(NamedTuple):
    """A signal, or the arrival at a barrier, that a wait needed.

    Attributes:
        rank: the card that sent it.
        call: the number of the card's call of a kernel.
        core: the core of the card.
        number: the position among the signals and waits of the core in this call.
        arrival: whether it is the arrival of a core at a barrier, which is a wait; otherwise a signal.
    """

    rank: int
    call: int
    core: Core
    number: int
    arrival: bool


class Act(NamedTuple):
    """A signal or a wait that a core executed.

    Attributes:
        waits: whether it is a wait.
        causes: the signals and arrivals that ended the wait. Empty if the word was right before any signal, and for signals.
        first: whether the first of them ends the wait, because each sets the word to the same number; otherwise all are needed.
    """

    waits: bool
    causes: tuple[Cause, ...] = ()
    first: bool = False


class _Change(NamedTuple):
    """A change of a word by a signal: the numbers before and after, whether it added, and the signal."""

    before: int
    after: int
    adds: bool
    cause: Cause


class _WordWait(NamedTuple):
    """A wait for a word, before all signals are known.

    Attributes:
        changes: the changes of the word so far; later ones are appended.
        first, last: the position of the first change that the wait needed, and the position after the last one.
    """

    changes: Sequence[_Change]
    first: int
    last: int

    def act(self) -> Act:
        """Returns the wait as an act, once all signals are known.

        Several cores may set a word to the same number. Which of them is first depends on the order in which the run executed
        them, so all are causes, also those that came after the wait was over.
        """
        first, last = self.first, self.last
        if first == last or self.changes[first].adds:
            return Act(True, tuple(change.cause for change in self.changes[first:last]))
        number = self.changes[first].after
        same = takewhile(lambda change: not change.adds and change.after == number, self.changes[first:])
        return Act(True, tuple(change.cause for change in same), True)


@dataclass
class CardCall:
    """A call of a kernel by a card.

    Attributes:
        name: the name of the kernel.
        launch: the result of the call; None while it runs.
    """

    name: str
    launch: AnyLaunch | None = None
    _acts: dict[Core, list[Act | _WordWait]] = field(default_factory=dict)

    def acts(self, core: Core) -> list[Act]:
        """Returns the signals and waits of a core, in program order; called after the pod has ended."""
        return [act if isinstance(act, Act) else act.act() for act in self._acts.get(core, [])]

    def count(self, core: Core) -> int:
        """Returns the number of signals and waits of a core so far."""
        return len(self._acts.get(core, ()))

    def append(self, core: Core, act: Act | _WordWait) -> None:
        """Adds a signal or a wait of a core."""
        self._acts.setdefault(core, []).append(act)


class CardLog:
    """What the cards of a pod did, as far as it matters for the time at which they do it.

    Args:
        ranks: the number of cards.

    Attributes:
        cards: for each card its calls of kernels in order, and ``MET`` where all cards met at a barrier between the calls.
    """

    def __init__(self, ranks: int) -> None:
        self.cards: list[list[CardCall | str]] = [[] for _ in range(ranks)]
        self._calls: list[list[CardCall]] = [[] for _ in range(ranks)]
        self._words: dict[Word, list[_Change]] = {}
        self._seen: dict[tuple[int, int, Core, Word], int] = {}
        self._arrivals: dict[tuple[int, int], list[Cause]] = {}
        self._lock = threading.Lock()

    def calls(self, rank: int) -> Sequence[CardCall]:
        """Returns the calls of a card, in order."""
        return self._calls[rank]

    def called(self, rank: int, name: str) -> None:
        """States that a kernel of a card begins."""
        call = CardCall(name)
        self._calls[rank].append(call)
        self.cards[rank].append(call)

    def launched(self, rank: int, launch: AnyLaunch) -> None:
        """States that the last kernel of a card has ended."""
        self._calls[rank][-1].launch = launch

    def met(self, rank: int) -> None:
        """States that a card has been at a barrier of all cards between its calls."""
        self.cards[rank].append(MET)

    def sent(self, rank: int, core: Core, word: Word, before: int, after: int, *, adds: bool) -> None:
        """States that a core sends a signal; called while no other card changes the word.

        Args:
            rank: the card.
            core: the core of the card.
            word: the word that is changed.
            before, after: the number in the word.
            adds: whether the signal adds to the word; otherwise it sets it.
        """
        with self._lock:
            cause = self._append(rank, core, Act(waits=False))
            self._words.setdefault(word, []).append(_Change(before, after, adds, cause))

    def waited(self, rank: int, core: Core, word: Word, holds: Callable[[Any], bool]) -> None:
        """States that a core has waited for a word.

        Args:
            rank: the card.
            core: the core of the card.
            word: the word.
            holds: whether a number in the word ends the wait.
        """
        with self._lock:
            key = rank, len(self._calls[rank]), core, word
            first, last = self._ended_by(self._words.get(word, []), self._seen.get(key, 0), holds)
            self._seen[key] = last
            self._append(rank, core, _WordWait(self._words.get(word, []), first, last))

    def arrived(self, rank: int, core: Core, team: int) -> None:
        """States that a card has reached a barrier of a team inside of a kernel."""
        with self._lock:
            call = len(self._calls[rank]) - 1
            number = self._calls[rank][call].count(core)
            self._arrivals.setdefault((team, rank), []).append(Cause(rank, call, core, number, True))

    def passed(self, rank: int, core: Core, team: int, members: Sequence[int]) -> None:
        """States that a core goes on after a barrier of a team.

        Args:
            rank: the card.
            core: the core of the card.
            team: the number of the team.
            members: the cards of the team; none for a core that only executes the statement and meets no cards.
        """
        with self._lock:
            turn = len(self._arrivals.get((team, rank), ())) - 1
            self._append(rank, core, Act(True, tuple(self._arrivals[team, one][turn] for one in members)))

    def _append(self, rank: int, core: Core, act: Act | _WordWait) -> Cause:
        number = len(self._calls[rank]) - 1
        call = self._calls[rank][number]
        call.append(core, act)
        return Cause(rank, number, core, call.count(core) - 1, False)

    @staticmethod
    def _ended_by(changes: Sequence[_Change], seen: int, holds: Callable[[Any], bool]) -> tuple[int, int]:
        """Returns the changes of a word that ended a wait, as the positions of the first one and after the last one.

        That is the change that made the condition true and kept it so; if it added to the word, also the additions before it,
        since their order may differ in modelled time.

        Args:
            changes: the changes so far.
            seen: the number of changes that an earlier wait of the same core for the same word needed.
            holds: whether a number ends the wait.
        """
        last = len(changes)
        while last and not holds(changes[last - 1].after):
            last -= 1  # changed again before the core went on
        while last > 1 and holds(changes[last - 1].before) and holds(changes[last - 2].after):
            last -= 1
        if last <= seen or holds(changes[last - 1].before):  # true since an earlier wait, by the card's own store, or at first
            return seen, seen
        first = last - 1
        while first > seen and changes[first].adds:
            earlier = changes[first - 1]
            if not earlier.adds or earlier.after != changes[first].before:
                break
            first -= 1
        return first, last
