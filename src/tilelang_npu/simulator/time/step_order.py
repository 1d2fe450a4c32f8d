"""The steps of cores that run concurrently, in an order in which every wait follows its set.

Each core issues its steps in program order to its pipes; a waiting pipe delays only its own later steps. The order is a linear
extension of happens-before: timing and hazard detection walk over it once, without look-ahead. If the walk gets stuck, the
cores hang, and the error says which pipes wait for what.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, overload

from tilelang_npu.simulator.machine.core_coroutines import CoreId, Rendezvous
from tilelang_npu.simulator.machine.op_records import CrossSet, Event, Fact, OpRecord, number_of
from tilelang_npu.simulator.time.deadlock import explain
from tilelang_npu.simulator.time.pipe_steps import (
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
"""An event of a core: the pipe that sets it, the pipe that waits for it, and its number."""
Key = EventKey | int
"""An event, or a flag between cores by its number."""


class Ordered(NamedTuple):
    """A step in the order.

    Attributes:
        core: position of its core among those that run concurrently.
        step: the step.
        number: position of its event in the core's stream.
        partners: for a wait, the positions of its sets in the order.
    """

    core: int
    step: PipeStep
    number: int
    partners: tuple[int, ...]


class OrderedSteps(Sequence[Ordered]):
    """Steps in order, stored by column, so that millions of steps are only four objects for the garbage collector.

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
        """Returns an iterator over the steps as plain tuples, for hot loops."""
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
    """The state of a core in its stream."""

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
        """Yields the steps that are not issued yet, each with the position of its event."""
        for step in self.steps[self.next_step:]:
            yield self.next_event - 1, step
        for number in range(self.next_event, len(self.stream)):
            for step in self.expansion.of(self.stream[number]):
                yield number, step

    def groups(self, flag: int) -> set[str]:
        """Returns the groups for which ops of the core may set a flag between cores."""
        works = [record.work for record in self.expansion.records if isinstance(record.work, CrossSet)]
        return {work.group for work in works if isinstance(work.flag, Fact) or work.flag == flag}


class StepOrder:
    """The step order of a group of cores.

    Args:
        cores: the cores.
        streams: their event streams.
        expansions: the steps of their events.
        limit: number of sets of a flag that may be outstanding.

    Attributes:
        steps: the order.
        leftover: events and flags that were set without a wait: ``(core, key, position of the set)``.
        doubled: events that were set again before the wait, in program order: ``(core, key, numbers of both events)``.
        overflowed: flags with more outstanding sets than ``limit``: ``(core, flag, position of the set)``.
        limit: as given.

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
        """Issues steps of a core as long as possible; returns whether there were any.

        This loop handles millions of steps, so the common kinds are inlined: work of a pipe that is not held, sets, and waits
        for events that are already set.
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
        """Executes steps from the queues of held pipes, as far as possible."""
        again = core.held > 0
        while again:
            again = False
            for queue in core.queues:
                while queue and self._execute(core, *queue[0]):
                    queue.popleft()
                    core.held -= 1
                    again = True

    def _execute(self, core: CoreState, step: PipeStep, number: int) -> bool:
        """Appends a step to the order; returns False if it waits for a set that is still missing."""
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
                waiting.append(tuple(sets))  # type: ignore[arg-type]  # the tokens are the positions passed to ``arrive``
                if len(waiting) > self.limit:
                    self.overflowed.append((target.place, step.number, here))
        return True
