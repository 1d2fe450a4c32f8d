"""The times of all cards of a pod, from the log of a run.

A launch begins when the card's previous one has ended, and after a barrier of all cards when the last card has reached it.
Inside of kernels, a wait for a signal ends at the first moment, after its core has reached it, at which the word has a number
that ends it: the signals change the word in the order of their modelled times. These times depend on the ends of earlier
waits, also of other cards. So at first all waits are open, and only the signals before them have times. Each round closes every
wait whose end no signal with an unknown time can still change, at least the one that ends first, and times the launches again
(a conservative discrete-event simulation).

If something else than signals changes a word in between, such as a store of the kernel, nothing is known of the time of that,
and a wait ends when the signal has arrived that ended it in the run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.card_log import Act, ActId, CardCall, CardLog, Change, Meeting, Signal, SignalLog, Word, WordWait
from tilelang_npu.card_races import Core
from tilelang_npu.errors import Location
from tilelang_npu.simulator.machine.op_records import PeerSignal, PeerWait, number_of
from tilelang_npu.simulator.machine.repeated_events import unrolled
from tilelang_npu.simulator.time.card_waits import CardTimer, CardWalk, PeerOp

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.target import Chip

__all__ = ["CardLaunch", "CardTimes", "SignalFlow", "Spans", "WaitSpan", "common", "length", "times_of", "union"]

Spans = NDArray[np.float64]
"""Disjoint intervals in order, an array of shape (n, 2), in microseconds from the start of the pod."""
SETTLED = 1e-6
"""Times that differ by fewer microseconds are equal."""
NEVER = 1e15
"""The end, in cycles, of a wait whose end is not known yet; later cycles are not known either."""


@dataclass(frozen=True)
class WaitSpan:
    """A wait of a core for other cards.

    Attributes:
        waiter: the core, such as ``AIV0 of block 3``.
        start, end: the microseconds in which it reaches the wait and goes on.
        location: the line of the wait; None if it is not known.
    """

    waiter: str
    start: float
    end: float
    location: Location | None


@dataclass(frozen=True)
class SignalFlow:
    """A signal, or an arrival at a barrier, that ended a wait whose core had reached it before.

    Attributes:
        sender, receiver: the ranks.
        sent, ended: the microseconds in which the signal is sent and the wait is over. Of several additions to a word, it is
            the last one.
    """

    sender: int
    receiver: int
    sent: float
    ended: float


@dataclass(frozen=True)
class CardLaunch:
    """A launch of a card.

    Attributes:
        name: the name of the kernel.
        start, end: the microseconds in which it begins and ends.
        overhead: the microseconds of launch overhead at its end, in which no block runs.
        waits: the waits of its cores that were not over when the cores reached them.
        computing: when pipe M or V of any core works.
        transfers: when a pipe of any core is busy with a transfer from or to another card that the core has begun.
    """

    name: str
    start: float
    end: float
    overhead: float
    waits: tuple[WaitSpan, ...]
    computing: Spans
    transfers: Spans


@dataclass(frozen=True)
class CardTimes:
    """The times of a card; all in microseconds.

    Attributes:
        launches: its launches, in order.
        barriers: the spans in which it waits at barriers between launches.
    """

    launches: tuple[CardLaunch, ...]
    barriers: tuple[tuple[float, float], ...]

    @property
    def end(self) -> float:
        """When the card's last launch ends."""
        return max((launch.end for launch in self.launches), default=0.0)

    @property
    def computing(self) -> Spans:
        """When pipe M or V of any core works."""
        return union([launch.computing for launch in self.launches])

    @property
    def transfers(self) -> Spans:
        """When a pipe of any core is busy with a transfer from or to another card that the core has begun."""
        return union([launch.transfers for launch in self.launches])

    @property
    def waiting(self) -> Spans:
        """When at least one core waits for other cards, or the card waits at a barrier between launches."""
        spans = [(wait.start, wait.end) for launch in self.launches for wait in launch.waits]
        return union([np.array([*spans, *self.barriers], float).reshape(-1, 2)])

    @property
    def overlap(self) -> float | None:
        """The share of the time with transfers in flight in which the card computes, from 0 to 1; None without transfers."""
        moving = self.transfers
        return length(common(moving, self.computing)) / length(moving) if len(moving) else None


def union(parts: Sequence[Spans]) -> Spans:
    """Returns the union of intervals that may overlap, as disjoint intervals in order."""
    spans = np.concatenate([part.reshape(-1, 2) for part in parts]) if parts else np.zeros((0, 2))
    spans = spans[spans[:, 1] > spans[:, 0]]
    if not len(spans):
        return spans
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    ends = np.maximum.accumulate(spans[:, 1])
    first = np.concatenate([[True], spans[1:, 0] > ends[:-1]])
    return np.stack([spans[first, 0], ends[np.concatenate([first[1:], [True]])]], axis=1)


def length(spans: Spans) -> float:
    """Returns the length of disjoint intervals together."""
    return float((spans[:, 1] - spans[:, 0]).sum())


def common(one: Spans, two: Spans) -> Spans:
    """Returns the intervals that two sequences of disjoint intervals in order have in common."""
    edges = np.sort(np.concatenate([one.reshape(-1), two.reshape(-1)]))
    middle = (edges[1:] + edges[:-1]) / 2
    inside = [np.searchsorted(spans[:, 0], middle, "right") > np.searchsorted(spans[:, 1], middle, "right")
              for spans in (one, two)]
    both = inside[0] & inside[1]
    return union([np.stack([edges[:-1][both], edges[1:][both]], axis=1)])


def times_of(log: CardLog, change: Callable[[Chip], Chip] | None = None) -> tuple[list[CardTimes], list[SignalFlow]]:
    """Returns the times of each card of a pod, and the signals that ended waits.

    Args:
        log: what the cards did.
        change: returns the chip on which a launch is timed, from the chip of its kernel; None to leave it.
    """
    walk = _PodWalk(log, change)
    walk.walk()
    return walk.cards(), list(walk.flows)


class _Place(NamedTuple):
    """Where a launch executes a signal or a wait.

    Attributes:
        block: the position of the block in the launch.
        op: its core among the cores that are timed together, and the position of the op in the core's stream.
    """

    block: int
    op: PeerOp


class _TimedLaunch:
    """A launch of a card, whose waits for other cards can be given ends. Times are in microseconds from the launch's start.

    Args:
        launch: the launch.
        call: the call that the launch belongs to.
        rank, number: the card, and the number of the call.
        firsts: for each core the number of its signals and waits in earlier launches of the call; updated in place.
    """

    def __init__(self, launch: Launch, call: CardCall, rank: int, number: int, firsts: dict[Core, int]) -> None:
        self.launch = launch
        self.start = 0.0
        self.acts: dict[ActId, tuple[_Place, Act]] = {}
        program = launch.recorded.program
        self._together = program.global_sync
        for place, run in enumerate(launch.recorded.blocks):
            for lane, (stream, (index, sub)) in enumerate(zip(run.streams, program.lanes, strict=True)):
                function = program.functions[index]
                numbers = {record.number for record in function.records if isinstance(record.work, PeerSignal | PeerWait)}
                if not numbers:
                    continue
                core = function.core, run.block, sub
                acts = call.acts.get(core, [])
                one = place * len(program.lanes) + lane if self._together else lane
                for position, event in enumerate(unrolled(stream)):
                    if number_of(event) in numbers:
                        turn = firsts.get(core, 0)
                        firsts[core] = turn + 1
                        if turn >= len(acts):  # a rehearsal, in which no core waits
                            break
                        act = acts[turn]
                        self.acts[ActId(rank, number, core, turn)] = _Place(place, (one, position)), act
        self._ends: dict[PeerOp, float] = {place.op: 0.0 if isinstance(act, Signal) else NEVER
                                           for place, act in self.acts.values()}
        self._groups = launch.group_of_block
        self._timers: dict[int, CardTimer] = {id(group): launch.card_timer(group) for group in launch.groups}
        self._walks: dict[int, CardWalk] = {}
        self._starts = launch.block_starts if not self._together else [0.0] * launch.blocks
        self._changed = True

    def _us(self, cycles: float) -> float:
        return self.launch.chip.microseconds(cycles)

    def _walk_of(self, place: _Place) -> CardWalk:
        return self._walks[id(self._groups[place.block])]

    def set_end(self, wait: ActId, us: float) -> None:
        """Sets the time at which a wait ends at the earliest."""
        self._ends[self.acts[wait][0].op] = us * 1e-6 * self.launch.chip.clock
        self._changed = True

    def time(self) -> None:
        """Times the launch with the ends of its waits; only if they have changed."""
        if self._changed:
            self._walks = {group: timer.walk(self._ends) for group, timer in self._timers.items()}
            self._changed = False

    @property
    def duration(self) -> float:
        """The duration, with the launch overhead at its end."""
        if not self._together:
            return self.launch.time_us
        (walk,) = self._walks.values()
        return self._us(walk.cycles) + self.launch.launch_us if walk.cycles < NEVER else inf

    def reached(self, act: ActId) -> float:
        """Returns when a core reaches a signal or a wait."""
        return self._moment(act, "reached")

    def done(self, act: ActId) -> float:
        """Returns when a wait is over, or a signal is at the other card."""
        return self._moment(act, "effects")

    def _moment(self, act: ActId, which: Literal["reached", "effects"]) -> float:
        place, _ = self.acts[act]
        walk = self._walk_of(place)
        found: Mapping[PeerOp, float] = getattr(walk, which)
        # Blocks of a kind that is not timed take the times of another kind, in which the signal may be missing.
        cycles = self._starts[place.block] + found.get(place.op, walk.cycles)
        return self._us(cycles) if cycles < NEVER else inf

    def spans(self, pick: Mapping[int, Sequence[tuple[float, float]]]) -> Spans:
        """Returns the union over all blocks of intervals that are given by group in cycles, as microseconds of the pod."""
        arrays = {group: np.array(spans, float).reshape(-1, 2) for group, spans in pick.items()}
        if self._together:
            found = list(arrays.values())
        else:
            found = [arrays[id(group)] + start
                     for start, group in zip(self._starts, self._groups, strict=True) if len(arrays[id(group)])]
        return union([self.start + union(found) * (1e6 / self.launch.chip.clock)])

    def result(self) -> CardLaunch:
        """Returns the times of the launch in microseconds of the pod."""
        computing = {group: [(first, last) for spans in walk.computing.values() for first, last in spans]
                     for group, walk in self._walks.items()}
        transfers = {group: [link for clock in walk.clocks for link in clock.links] for group, walk in self._walks.items()}
        waits = []
        for group, walk in self._walks.items():
            cores, program = self._timers[group].cores, self.launch.recorded.program
            for wait in walk.waits:
                core = cores[wait.op[0]]
                index, _ = program.lanes[wait.op[0] % len(program.lanes)]
                waits.append(WaitSpan(f"{core.label} of block {core.block}", self.start + self._us(wait.start),
                                      self.start + self._us(wait.end), program.functions[index].records[wait.record].location))
        return CardLaunch(self.launch.name, self.start, self.start + self.duration, self.launch.launch_us, tuple(waits),
                          self.spans(computing), self.spans(transfers))


class _WordTimes:
    """The numbers in a word over modelled time.

    Args:
        first: the number before all signals.
        changes: the changes by signals with the times at which they arrive, in order of time.
    """

    def __init__(self, first: int, changes: Sequence[tuple[float, Change]]) -> None:
        self._times = [time for time, _ in changes]
        self._changes = [change for _, change in changes]
        self._numbers = [first]
        for change in self._changes:
            number = self._numbers[-1] + change.after - change.before if change.adds else change.after
            self._numbers.append((number + 2**31) % 2**32 - 2**31)  # int32

    def end_of(self, wait: WordWait, start: float) -> tuple[float, ActId | None] | None:
        """Returns when a wait that begins at ``start`` is over, and the signal that ends it, None if it need not wait; None if
        no signal ends it."""
        place = bisect_right(self._times, start + SETTLED)  # the core's own signal just before is in the word
        if wait.holds(self._numbers[place]):
            return start, None
        for time, number, change in zip(self._times[place:], self._numbers[place + 1:], self._changes[place:], strict=True):
            if wait.holds(number):
                return time, change.signal
        return None


class _PodWalk:
    """Times the launches of all cards.

    Args:
        log: what the cards did.
        change: returns the chip on which a launch is timed, from the chip of its kernel; None to leave it.

    Attributes:
        flows: the signals that ended waits, after :meth:`walk`.
    """

    def __init__(self, log: CardLog, change: Callable[[Chip], Chip] | None) -> None:
        self._log = log
        self._launches: list[list[list[_TimedLaunch]]] = []  # by card and by stretch between barriers
        self._timed: dict[ActId, _TimedLaunch] = {}  # the launches of the stretches so far, by their signals and waits
        self._met: list[list[tuple[float, float]]] = [[] for _ in log.cards]
        self.flows: list[SignalFlow] = []
        for rank, calls in enumerate(log.cards):
            stretches: list[list[_TimedLaunch]] = [[]]
            number = -1
            for call in calls:
                if not isinstance(call, CardCall):
                    stretches.append([])
                    continue
                number += 1
                firsts: dict[Core, int] = {}
                for part in call.launch.parts if call.launch is not None else ():
                    retimed = part if change is None else part.retimed(change(part.chip))
                    stretches[-1].append(_TimedLaunch(retimed, call, rank, number, firsts))
            self._launches.append(stretches)

    def walk(self) -> None:
        """Computes the times of all launches."""
        free = [0.0] * len(self._launches)
        for stretch in range(max(map(len, self._launches))):
            here = [stretches[stretch] if stretch < len(stretches) else [] for stretches in self._launches]
            for launch in (one for launches in here for one in launches):
                self._timed.update(dict.fromkeys(launch.acts, launch))
            waits = {wait for launches in here for launch in launches for wait, (_, act) in launch.acts.items()
                     if not isinstance(act, Signal)}
            ends = [self._run(launches, start) for launches, start in zip(here, free, strict=True)]
            while waits:
                waits -= self._end_waits(waits)
                ends = [self._run(launches, start) for launches, start in zip(here, free, strict=True)]
            last = max(ends)
            if stretch + 1 < max(map(len, self._launches)):
                for rank, end in enumerate(ends):
                    if end < last:
                        self._met[rank].append((end, last))
                ends = [last] * len(ends)
            free = ends

    @staticmethod
    def _run(launches: Sequence[_TimedLaunch], start: float) -> float:
        """Times the launches of a card one after the other; returns when the last one ends."""
        for launch in launches:
            launch.start = start
            launch.time()
            start += launch.duration
        return start

    def _end_waits(self, waits: set[ActId]) -> set[ActId]:
        """Ends those of some waits whose ends no signal can change that is not known yet; returns them."""
        reached = {wait: self._reached(wait) for wait in waits}
        words: dict[Word, _WordTimes] = {}
        found = {wait: self._end_of(wait, start, words) for wait, start in reached.items() if start < inf}
        known = {wait: end for wait, end in found.items() if end is not None}
        if not known:  # signals in another order than in the run, or changes by something else: as in the run
            known = {wait: self._end_in_run(wait, reached[wait]) for wait in found} or dict.fromkeys(waits, (0.0, None))
            known = {wait: end if end[0] < inf else (reached[wait], None) for wait, end in known.items()}
        first = min(end for end, _ in known.values())
        begin = [inf] * len(self._launches)
        for wait, start in reached.items():
            begin[wait.rank] = min(begin[wait.rank], start)
        ended = set()
        for wait, (end, signal) in known.items():
            if end > first + SETTLED and end > self._earliest_change(wait, begin, first):
                continue
            ended.add(wait)
            launch = self._timed[wait]
            launch.set_end(wait, end - launch.start)
            if signal is not None and end > reached[wait]:
                sender = self._timed[signal]
                self.flows.append(SignalFlow(signal.rank, wait.rank, sender.start + sender.reached(signal), end))
        return ended

    def _earliest_change(self, wait: ActId, begin: Sequence[float], first: float) -> float:
        """Returns a time before which no signal that is not known yet can change the word of a wait.

        Args:
            wait: the wait.
            begin: for each card the time at which it reaches the first of its waits whose end is not known.
            first: a time before which none of these waits ends.
        """
        _, act = self._timed[wait].acts[wait]
        log = self._log.words.get(act.word) if isinstance(act, WordWait) else None
        earliest = inf
        for change in () if log is None else log.changes:
            signal = change.signal
            if signal in self._timed and self._at_word(signal) == inf:
                late = self._timed[wait].launch.chip.links.latency * 1e6 if signal.rank != wait.rank else 0.0
                earliest = min(earliest, max(begin[signal.rank], first) + late)
        return earliest

    def _reached(self, act: ActId) -> float:
        launch = self._timed[act]
        return launch.start + launch.reached(act)

    def _end_of(self, wait: ActId, start: float, words: dict[Word, _WordTimes]) -> tuple[float, ActId | None] | None:
        """Returns when a wait is over that a core reaches at ``start``, by what is known, and the signal or the arrival that
        ends it; None if nothing that is known ends it."""
        _, act = self._timed[wait].acts[wait]
        if isinstance(act, Meeting):
            came = {one: self._arrival(one) for one in act.arrivals if one in self._timed and one != wait}
            last = max(came, key=came.__getitem__, default=None)
            if last is None:
                return start, None
            return None if came[last] == inf else (max(start, came[last]), last)
        assert isinstance(act, WordWait), "a signal does not wait"
        log = self._log.words.get(act.word)
        if log is None:
            return start, None
        if not log.is_signalled_alone:
            end = self._end_in_run(wait, start)
            return None if end[0] == inf else end
        if act.word not in words:
            words[act.word] = self._times_of(log)
        return words[act.word].end_of(act, start)

    def _end_in_run(self, wait: ActId, start: float) -> tuple[float, ActId | None]:
        """Returns when the signal or the arrival is there that ended a wait in the run, and this signal."""
        _, act = self._timed[wait].acts[wait]
        log = self._log.words.get(act.word) if isinstance(act, WordWait) else None
        place = log.ended(act) if log is not None and isinstance(act, WordWait) else -1
        if log is None or place < 0:
            return start, None
        signal = log.changes[place].signal
        return (max(start, self._at_word(signal)), signal) if signal in self._timed else (start, None)

    def _times_of(self, log: SignalLog) -> _WordTimes:
        known = [(self._at_word(change.signal), change) for change in log.changes if change.signal in self._timed]
        return _WordTimes(log.changes[0].before, sorted((one for one in known if one[0] < inf), key=lambda one: one[0]))

    def _at_word(self, signal: ActId) -> float:
        """Returns when a signal is at its word. A word of the card's own memory needs no link."""
        launch = self._timed[signal]
        _, act = launch.acts[signal]
        assert isinstance(act, Signal)
        own = launch.launch.chip.links.latency * 1e6 if act.word[0] == signal.rank else 0.0
        return launch.start + launch.done(signal) - own

    def _arrival(self, arrival: ActId) -> float:
        """Returns when the other cards know that a card has reached a barrier."""
        launch = self._timed[arrival]
        return launch.start + launch.reached(arrival) + launch.launch.chip.links.latency * 1e6

    def cards(self) -> list[CardTimes]:
        """Returns the times of the cards."""
        return [CardTimes(tuple(launch.result() for stretch in stretches for launch in stretch), tuple(met))
                for stretches, met in zip(self._launches, self._met, strict=True)]
