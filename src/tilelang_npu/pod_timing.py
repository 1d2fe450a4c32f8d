"""The times of all cards of a pod, from the log of a run.

A launch begins when the card's previous one has ended, and after a barrier of all cards when the last card has reached it.
Inside of kernels, a wait for a signal ends when the signals have arrived that ended it in the run
(:mod:`tilelang_npu.card_log`). The times of the signals depend on those of earlier waits, also of other cards, so the launches
between two barriers are timed again until no wait ends later than before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.card_log import Act, CardCall, CardLog, Cause
from tilelang_npu.card_races import Core
from tilelang_npu.errors import Location
from tilelang_npu.simulator.machine.op_records import PeerSignal, PeerWait, number_of
from tilelang_npu.simulator.machine.repeated_events import unrolled
from tilelang_npu.simulator.time.card_waits import ActKey, CardTimer, CardWalk

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.target import Chip

__all__ = ["CardLaunch", "CardTimes", "SignalFlow", "Spans", "WaitSpan", "common", "length", "times_of", "union"]

Spans = NDArray[np.float64]
"""Disjoint intervals in order, an array of shape (n, 2), in microseconds from the start of the pod."""
SETTLED = 1e-6
"""Two ends of a wait that differ by fewer microseconds are equal."""


@dataclass(frozen=True)
class WaitSpan:
    """A wait of a core for other cards.

    Attributes:
        core: the core, such as ``AIV0 of block 3``.
        start, end: the microseconds in which it reaches the wait and goes on.
        location: the line of the wait; None if it is not known.
    """

    core: str
    start: float
    end: float
    location: Location | None


@dataclass(frozen=True)
class SignalFlow:
    """A signal that ended a wait.

    Attributes:
        sender, receiver: the ranks.
        sent, ended: the microseconds in which the signal is sent and the wait is over.
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
        transfers: when a transfer from or to another card is in flight.
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
        met: the spans in which it waits at barriers between launches.
    """

    launches: tuple[CardLaunch, ...]
    met: tuple[tuple[float, float], ...]

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
        """When a transfer from or to another card is in flight."""
        return union([launch.transfers for launch in self.launches])

    @property
    def waiting(self) -> Spans:
        """When at least one core waits for other cards, or the card waits at a barrier between launches."""
        spans = [(wait.start, wait.end) for launch in self.launches for wait in launch.waits]
        return union([np.array([*spans, *self.met], float).reshape(-1, 2)])

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


def times_of(log: CardLog, chip: Chip | None = None) -> tuple[list[CardTimes], list[SignalFlow]]:
    """Returns the times of each card of a pod, and the signals that ended waits.

    Args:
        log: what the cards did.
        chip: the chip of all cards; None for that of the kernels.
    """
    walk = _PodWalk(log, chip)
    walk.walk()
    return walk.cards(), list(walk.flows)


class _Place(NamedTuple):
    """Where a launch executes a signal or a wait.

    Attributes:
        block: the position of the block in the launch.
        act: its core among the cores that are timed together, and the position of the op in the core's stream.
    """

    block: int
    act: ActKey


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
        self.acts: dict[Cause, tuple[_Place, Act]] = {}
        program = launch.recorded.program
        self._together = program.global_sync
        for place, run in enumerate(launch.recorded.blocks):
            for lane, (stream, (index, sub)) in enumerate(zip(run.streams, program.lanes, strict=True)):
                function = program.functions[index]
                numbers = {record.number for record in function.records if isinstance(record.work, PeerSignal | PeerWait)}
                if not numbers:
                    continue
                core = function.core, run.block, sub
                acts = call.acts(core)
                one = place * len(program.lanes) + lane if self._together else lane
                for position, event in enumerate(unrolled(stream)):
                    if number_of(event) in numbers:
                        turn = firsts.get(core, 0)
                        firsts[core] = turn + 1
                        if turn >= len(acts):  # a rehearsal, in which no core waits
                            break
                        act = acts[turn]
                        self.acts[Cause(rank, number, core, turn, act.waits)] = _Place(place, (one, position)), act
        self._ends: dict[ActKey, float] = {place.act: 0.0 for place, _ in self.acts.values()}
        self._groups = launch.group_of_block
        self._timers: dict[int, CardTimer] = {id(group): launch.card_timer(group) for group in launch.groups}
        self._walks: dict[int, CardWalk] = {}
        self._starts = launch.block_starts if not self._together else [0.0] * launch.blocks
        self._changed = True

    def _us(self, cycles: float) -> float:
        return self.launch.chip.microseconds(cycles)

    def _walk_of(self, place: _Place) -> CardWalk:
        return self._walks[id(self._groups[place.block])]

    def set_ends(self, ends: Mapping[Cause, float]) -> None:
        """Sets the times at which waits end at the earliest."""
        for cause, us in ends.items():
            act = self.acts[cause][0].act
            cycles = us * 1e-6 * self.launch.chip.clock
            if abs(self._ends[act] - cycles) > SETTLED * 1e-6 * self.launch.chip.clock:
                self._ends[act] = cycles
                self._changed = True

    @property
    def is_changed(self) -> bool:
        """Whether ends of waits have changed since the launch was timed."""
        return self._changed

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
        return self._us(walk.cycles) + self.launch.launch_us

    def moment(self, cause: Cause) -> float:
        """Returns when a signal has arrived at the other card, or a core has arrived at a barrier."""
        place, _ = self.acts[cause]
        walk = self._walk_of(place)
        found = walk.reached if cause.arrival else walk.effects
        # Blocks of a kind that is not timed take the time of another kind, in which the signal may be missing.
        return self._us(self._starts[place.block] + found.get(place.act, walk.cycles))

    def sent(self, cause: Cause) -> float:
        """Returns when a core reaches a signal, or a barrier."""
        place, _ = self.acts[cause]
        walk = self._walk_of(place)
        return self._us(self._starts[place.block] + walk.reached.get(place.act, 0.0))

    def end_of(self, cause: Cause) -> float:
        """Returns when a wait is over."""
        place, _ = self.acts[cause]
        return self._us(self._walk_of(place).effects.get(place.act, 0.0))

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
            cores, records = self._timers[group].cores, self.launch.recorded.program
            for wait in walk.waits:
                core = cores[wait.act[0]]
                index, _ = records.lanes[wait.act[0] % len(records.lanes)]
                waits.append(WaitSpan(f"{core.label} of block {core.block}", self.start + self._us(wait.start),
                                      self.start + self._us(wait.end), records.functions[index].records[wait.op].location))
        return CardLaunch(self.launch.name, self.start, self.start + self.duration, self.launch.launch_us, tuple(waits),
                          self.spans(computing), self.spans(transfers))


class _PodWalk:
    """Times the launches of all cards.

    Args:
        log: what the cards did.
        chip: the chip of all cards; None for that of the kernels.

    Attributes:
        flows: the signals that ended waits, after :meth:`walk`.
    """

    def __init__(self, log: CardLog, chip: Chip | None) -> None:
        self._launches: list[list[list[_TimedLaunch]]] = []  # by card and by stretch between barriers
        self._holders: dict[Cause, _TimedLaunch] = {}
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
                    timed = _TimedLaunch(part if chip is None else part.retimed(chip), call, rank, number, firsts)
                    stretches[-1].append(timed)
                    self._holders.update(dict.fromkeys(timed.acts, timed))
            self._launches.append(stretches)

    def walk(self) -> None:
        """Computes the times of all launches."""
        free = [0.0] * len(self._launches)
        for stretch in range(max(map(len, self._launches))):
            here = [stretches[stretch] if stretch < len(stretches) else [] for stretches in self._launches]
            while True:
                ends = [self._run(launches, start) for launches, start in zip(here, free, strict=True)]
                if not self._move_waits(here):
                    break
            last = max(ends)
            if stretch + 1 < max(map(len, self._launches)):
                for rank, end in enumerate(ends):
                    if end < last:
                        self._met[rank].append((end, last))
                ends = [last] * len(ends)
            free = ends
        self._note_flows()

    @staticmethod
    def _run(launches: Sequence[_TimedLaunch], start: float) -> float:
        """Times the launches of a card one after the other; returns when the last one ends."""
        for launch in launches:
            launch.start = start
            launch.time()
            start += launch.duration
        return start

    def _move_waits(self, here: Sequence[Sequence[_TimedLaunch]]) -> bool:
        """Sets the ends of waits to the times of their signals; returns whether one of them has changed."""
        changed = False
        for launch in (one for launches in here for one in launches):
            ends = {wait: (min if act.first else max)(self._moment(wait, cause) for cause in act.causes) - launch.start
                    for wait, (_, act) in launch.acts.items() if act.causes}
            launch.set_ends(ends)
            changed = changed or launch.is_changed
        return changed

    def _moment(self, wait: Cause, cause: Cause) -> float:
        """Returns when a signal or an arrival has its effect on a wait, in microseconds of the pod."""
        holder = self._holders[cause]
        late = holder.launch.chip.links.latency * 1e6 if cause.arrival and cause.rank != wait.rank else 0.0
        return holder.start + holder.moment(cause) + late

    def _note_flows(self) -> None:
        for wait, launch in self._holders.items():
            _, act = launch.acts[wait]
            if act.causes:
                last = (min if act.first else max)(act.causes, key=lambda cause: self._moment(wait, cause))
                holder = self._holders[last]
                self.flows.append(SignalFlow(last.rank, wait.rank, holder.start + holder.sent(last),
                                             launch.start + launch.end_of(wait)))

    def cards(self) -> list[CardTimes]:
        """Returns the times of the cards."""
        return [CardTimes(tuple(launch.result() for stretch in stretches for launch in stretch), tuple(met))
                for stretches, met in zip(self._launches, self._met, strict=True)]
