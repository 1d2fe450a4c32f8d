"""The steps of cores that run together, in an order in which every wait comes behind its set.

Each core issues its steps in program order to its pipes; a pipe that waits holds what comes behind it, nothing else. So the
order is a linear extension of happens-before: timing and hazard checks walk over it once and never have to look ahead. If
the walk gets stuck, the cores would hang: the error says who waits for what.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, overload

from tilelang_npu.simulator.machine.events import Event, Fact, OpRecord, number_of
from tilelang_npu.simulator.machine.running_cores import CoreId, Rendezvous
from tilelang_npu.simulator.machine.work import CrossSet
from tilelang_npu.simulator.time.deadlock import explain
from tilelang_npu.simulator.time.steps import (
    ALL,
    CROSS_SET,
    CROSS_WAIT,
    PIPES,
    SET,
    WAIT,
    Expansion,
    PipeStep,
)

SCALAR = 0
BETWEEN_CORES = (CROSS_SET, CROSS_WAIT)
NOBODY: tuple[int, ...] = ()
EventKey = tuple[int, int, int]
"""An event of a core: the pipe that sets it, the pipe that waits for it, its number."""
Key = EventKey | int
"""An event, or a flag between cores."""


class Ordered(NamedTuple):
    """A step in the order.

    Attributes:
        core: position of its core among those that run together.
        step: the step.
        number: place of its event in the core's stream.
        partners: of a wait the places in the order of the sets it waits for.
    """

    core: int
    step: PipeStep
    number: int
    partners: tuple[int, ...]


class OrderedSteps(Sequence[Ordered]):
    """Steps in their order, kept by column: of millions of them the garbage collector sees four lists.

    Attributes:
        columns: the lists of cores, steps, numbers and partners of ``Ordered``.
    """

    __slots__ = ("columns",)

    def __init__(self, steps: Iterable[Ordered] = ()) -> None:
        self.columns: tuple[list[int], list[PipeStep], list[int], list[tuple[int, ...]]] = [], [], [], []
        for step in steps:
            self.append(*step)

    def append(self, core: int, step: PipeStep, number: int, partners: tuple[int, ...]) -> None:
        cores, steps, numbers, others = self.columns
        cores.append(core)
        steps.append(step)
        numbers.append(number)
        others.append(partners)

    def rows(self) -> Iterator[tuple[int, PipeStep, int, tuple[int, ...]]]:
        """The steps as plain tuples, for loops that take them apart."""
        return zip(*self.columns, strict=True)

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[Ordered]:
        return map(Ordered, *self.columns)

    @overload
    def __getitem__(self, place: int) -> Ordered: ...

    @overload
    def __getitem__(self, place: slice) -> list[Ordered]: ...

    def __getitem__(self, place: int | slice) -> Ordered | list[Ordered]:
        if isinstance(place, slice):
            return list(map(Ordered, *(column[place] for column in self.columns)))
        cores, steps, numbers, partners = self.columns
        return Ordered(cores[place], steps[place], numbers[place], partners[place])


@dataclass
class CoreState:
    """A core on its way through its stream."""

    place: int
    identity: CoreId
    stream: Sequence[Event]
    expansion: Expansion
    next_event: int = 0
    steps: tuple[PipeStep, ...] = ()
    next_step: int = 0
    queues: list[deque[tuple[PipeStep, int]]] = field(default_factory=lambda: [deque() for _ in PIPES])
    tokens: dict[Key, deque[tuple[int, ...]]] = field(default_factory=dict)
    outstanding: dict[EventKey, list[int]] = field(default_factory=dict)
    held: int = 0

    def record(self, number: int) -> OpRecord:
        return self.expansion.records[number_of(self.stream[number])]

    def unissued(self) -> Iterator[tuple[int, PipeStep]]:
        """The steps that were not issued yet, each with the place of its event."""
        for step in self.steps[self.next_step:]:
            yield self.next_event - 1, step
        for number in range(self.next_event, len(self.stream)):
            for step in self.expansion.of(self.stream[number]):
                yield number, step

    def groups(self, flag: int) -> set[str]:
        """The groups with which ops of the core may set a flag between cores."""
        works = [record.work for record in self.expansion.records if isinstance(record.work, CrossSet)]
        return {work.group for work in works if isinstance(work.flag, Fact) or work.flag == flag}


class StepOrder:
    """The linear order of a group of cores.

    Args:
        cores: the cores.
        streams: their event streams.
        expansions: the steps of their events.

    Attributes:
        steps: the order.
        leftover: events and flags that were set and never waited for: ``(core, key, place of the set)``.
        doubled: events set again before they were waited for, in program order: ``(core, key, numbers of both events)``.
        overflowed: flags with more sets outstanding than ``limit``: ``(core, flag, place of the set)``.
        limit: sets of a flag that may be outstanding.

    Raises:
        TileError: S301 to S303, the cores hang.
    """

    def __init__(self, cores: Sequence[CoreId], streams: Sequence[Sequence[Event]], expansions: Sequence[Expansion],
                 limit: int) -> None:
        self.steps = OrderedSteps()
        self.leftover: list[tuple[int, Key, int]] = []
        self.doubled: list[tuple[int, EventKey, int, int]] = []
        self.overflowed: list[tuple[int, int, int]] = []
        self.limit = limit
        self._cores = [CoreState(place, *parts) for place, parts in enumerate(zip(cores, streams, expansions, strict=True))]
        self._place = {core.identity: core for core in self._cores}
        self._rendezvous = Rendezvous(cores)
        self._run()

    def _run(self) -> None:
        moved = True
        while moved:
            moved = False
            for core in self._cores:
                moved = self._advance(core) or moved
        if any(core.next_event < len(core.stream) or core.next_step < len(core.steps) or core.held for core in self._cores):
            raise explain(self._cores, self.steps, self._rendezvous)
        for core in self._cores:
            for key, tokens in core.tokens.items():
                self.leftover += [(core.place, key, partners[0]) for partners in tokens]
        self.leftover.sort(key=lambda item: item[2])

    def _advance(self, core: CoreState) -> bool:
        """Issue what the core can; whether there was something.

        Millions of steps come by here: what most of them are, work of a pipe that nothing holds, events that are set and
        events that were set, is done in place.
        """
        order, place, stream = self.steps, core.place, core.stream
        queues, tokens, outstanding = core.queues, core.tokens, core.outstanding
        scalar, of = queues[SCALAR], core.expansion.of
        cores, ordered, numbers, others = order.columns
        before = len(order), core.next_event, core.next_step
        steps, next_event, next_step = core.steps, core.next_event, core.next_step
        self._drain(core)
        while True:
            if next_step >= len(steps):
                if next_event >= len(stream):
                    break
                steps = of(stream[next_event])
                next_event += 1
                next_step = 0
                continue
            if scalar:
                break
            step = steps[next_step]
            kind, pipe, number = step[0], step[1], next_event - 1
            if pipe == ALL:
                if core.held:
                    break
                order.append(place, step, number, NOBODY)
                next_step += 1
                continue
            waiting, partners = len(queues[pipe]) > 0, NOBODY
            if kind == SET:
                event = pipe, step[2], step[3]
                sets = outstanding.setdefault(event, [])
                if sets:
                    self.doubled.append((place, event, sets[-1], number))
                sets.append(number)
                if not waiting:
                    tokens.setdefault(event, deque()).append((len(order),))
            elif kind == WAIT:
                event = step[2], pipe, step[3]
                sets = outstanding.get(event, [])
                if sets:
                    del sets[0]
                fired = tokens.get(event)
                if fired and not waiting:
                    partners = fired.popleft()
                else:
                    waiting = True
            elif kind in BETWEEN_CORES:
                if waiting or not self._execute(core, step, number):
                    queues[pipe].append((step, number))
                    core.held += 1
                next_step += 1
                continue
            if waiting:
                queues[pipe].append((step, number))
                core.held += 1
            else:
                cores.append(place)
                ordered.append(step)
                numbers.append(number)
                others.append(partners)
                if kind == SET and core.held:
                    self._drain(core)
            next_step += 1
        core.steps, core.next_event, core.next_step = steps, next_event, next_step
        return before != (len(order), next_event, next_step)

    def _drain(self, core: CoreState) -> None:
        """Execute what held pipes have queued, as far as it goes."""
        again = core.held > 0
        while again:
            again = False
            for queue in core.queues:
                while queue and self._execute(core, *queue[0]):
                    queue.popleft()
                    core.held -= 1
                    again = True

    def _execute(self, core: CoreState, step: PipeStep, number: int) -> bool:
        """Put a step into the order; False if it waits for a set that has not come."""
        kind = step.kind
        partners = NOBODY
        if kind in (WAIT, CROSS_WAIT):
            tokens = core.tokens.get(step.event if kind == WAIT else step.number)
            if not tokens:
                return False
            partners = tokens.popleft()
        here = len(self.steps)
        self.steps.append(core.place, step, number, partners)
        if kind == SET:
            core.tokens.setdefault(step.event, deque()).append((here,))
        elif kind == CROSS_SET:
            receivers, sets = self._rendezvous.arrive(core.identity, step.number, step.group, here)
            for receiver in receivers:
                target = self._place[receiver]
                waiting = target.tokens.setdefault(step.number, deque())
                waiting.append(tuple(sets))  # type: ignore[arg-type]  # the rendezvous keeps places
                if len(waiting) > self.limit:
                    self.overflowed.append((target.place, step.number, here))
        return True
