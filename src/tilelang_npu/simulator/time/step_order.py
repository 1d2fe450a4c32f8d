"""The steps of cores that run concurrently, in an order in which every wait follows its set. A step is one action of an op on
one pipe.

Each core issues its steps to its pipes in program order; a pipe that waits delays only its own later steps. The order is a
linear extension of happens-before, so timing and race detection need only one pass over it. If no order exists, the cores hang,
and the error says which pipes wait for which events and flags.
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
    JOIN,
    RELEASE,
    SET,
    WAIT,
    Expansion,
    PipeStep,
)
from tilelang_npu.simulator.time.unit_flags import UnitFlags
from tilelang_npu.target.chip_data import PIPES

SCALAR = 0
_UNIT_FLAGS = (JOIN, RELEASE)
NO_PARTNERS: tuple[int, ...] = ()
EventKey = tuple[int, int, int]
"""An event of a core: the pipe that sets it, the pipe that waits for it, and the number of the event."""
Key = EventKey | int
"""An event of a core, or the number of a flag between cores."""


class Ordered(NamedTuple):
    """A step with its position in the program.

    Attributes:
        core: the position of the step's core among the cores that run concurrently.
        step: the step.
        number: the position, in the core's stream, of the executed op that the step belongs to.
        partners: for a wait, the positions in the order of the sets that it waits for, and for a ``JOIN`` the position of the
            ``RELEASE``; empty otherwise.
    """

    core: int
    step: PipeStep
    number: int
    partners: tuple[int, ...]


class OrderedSteps(Sequence[Ordered]):
    """A sequence of ``Ordered`` steps. It is stored as four lists, so that the garbage collector has only four objects to visit
    for millions of steps.

    Attributes:
        columns: the lists of the fields ``core``, ``step``, ``number`` and ``partners`` of all steps.
    """

    __slots__ = ("columns",)

    def __init__(self, steps: Iterable[Ordered] = ()) -> None:
        self.columns: tuple[list[int], list[PipeStep], list[int], list[tuple[int, ...]]] = [], [], [], []
        for step in steps:
            self.append(*step)

    def append(self, core: int, step: PipeStep, number: int, partners: tuple[int, ...]) -> None:
        """Appends a step, given by the fields of ``Ordered``."""
        cores, steps, numbers, others = self.columns
        cores.append(core)
        steps.append(step)
        numbers.append(number)
        others.append(partners)

    def rows(self) -> Iterator[tuple[int, PipeStep, int, tuple[int, ...]]]:
        """Returns an iterator over the steps as plain tuples of the fields of ``Ordered``, which is faster than iterating over
        ``Ordered`` objects."""
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
    """The state of a core while the order is built: how far it has issued its steps, and which steps wait in its pipes' queues.

    Attributes:
        place: the position of the core among the cores that run concurrently.
        identity: the identity of the core.
        stream: the executed ops of the core, in program order.
        expansion: the steps of these ops.
        next_event: the position in ``stream`` of the next op whose steps are issued.
        steps: the steps of the op that precedes position ``next_event``.
        next_step: the position in ``steps`` of the next step to issue.
        queues: for each pipe, the issued steps that wait, each with the position of its op in ``stream``.
        tokens: for each event or flag, the sets that no wait has consumed yet, each as positions in the order.
        outstanding: for each event, the positions in ``stream`` of the sets whose waits are not issued yet.
        unit_flags: the blocks of L0C that products have passed on, and the releases of blocks.
        held: the number of steps in all queues.
        stop: the position in ``stream`` before which the core issues steps; the end of the stream.
    """

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
    unit_flags: UnitFlags = field(default_factory=UnitFlags)
    held: int = 0
    stop: int = -1

    def __post_init__(self) -> None:
        self.stop = len(self.stream)

    def record(self, number: int) -> OpRecord:
        """Returns the record of the op at a position in the core's stream."""
        return self.expansion.records[number_of(self.stream[number])]

    def unissued(self) -> Iterator[tuple[int, PipeStep]]:
        """Yields the steps that are not issued yet, as pairs of the position of the op in the core's stream and the step."""
        for step in self.steps[self.next_step:]:
            yield self.next_event - 1, step
        for number in range(self.next_event, len(self.stream)):
            for step in self.expansion.of(self.stream[number]):
                yield number, step

    def groups(self, flag: int) -> set[str]:
        """Returns the names of the groups of cores for which the core's ops set the flag ``flag``, or possibly set it because
        the flag's number is only known at run time."""
        works = [record.work for record in self.expansion.records if isinstance(record.work, CrossSet)]
        return {work.group for work in works if isinstance(work.flag, Fact) or work.flag == flag}


class StepOrder:
    """An order of the steps of a group of cores in which every wait follows its set.

    Args:
        cores: the cores.
        streams: for each core the executed ops, in program order.
        expansions: for each core the steps of its ops.
        limit: the maximum number of sets of a flag between cores that no wait has consumed yet.

    Attributes:
        steps: the steps in order.
        leftover: the sets that no wait consumes: tuples of the waiting core, the event or flag, and the position of the set.
        doubled: the events that are set again before the previous set was waited for, in program order: tuples of the core, the
            event, and the positions of both sets in the core's stream.
        overflowed: the sets by which a flag exceeds ``limit``: tuples of the waiting core, the flag, and the position of the
            set.
        limit: the argument ``limit``.

    Raises:
        TileError: S301 to S303 and S307, the cores hang.
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
        """Issues steps of a core until its scalar unit waits or the program ends; returns whether any step was issued or
        executed.

        This loop handles millions of steps. Therefore the common kinds are inlined: work of a pipe whose queue is empty, sets,
        and waits for events that are already set.
        """
        order, place, stream = self.steps, core.place, core.stream
        queues, tokens, outstanding = core.queues, core.tokens, core.outstanding
        scalar, of = queues[SCALAR], core.expansion.of
        cores, ordered, numbers, others = order.columns
        before = len(order), core.next_event, core.next_step
        steps, next_event, next_step = core.steps, core.next_event, core.next_step
        stop = core.stop
        self._drain(core)
        while True:
            if next_step >= len(steps):
                if next_event >= stop:
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
                order.append(place, step, number, NO_PARTNERS)
                next_step += 1
                continue
            waiting, partners = len(queues[pipe]) > 0, NO_PARTNERS
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
            elif kind >= CROSS_SET:  # flags between cores and unit flags
                if kind in _UNIT_FLAGS:
                    step = core.unit_flags.issued(step, core.record(number))
                if waiting or not self._execute(core, step, number):
                    queues[pipe].append((step, number))
                    core.held += 1
                elif core.held and kind in _UNIT_FLAGS:
                    self._drain(core)
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
        """Executes the steps in the queues of a core's pipes, until each queue is empty or begins with a wait whose set is
        missing."""
        again = core.held > 0
        while again:
            again = False
            for queue in core.queues:
                while queue and self._execute(core, *queue[0]):
                    queue.popleft()
                    core.held -= 1
                    again = True

    def _execute(self, core: CoreState, step: PipeStep, number: int) -> bool:
        """Appends a step to the order and returns True; returns False if the step waits for a set or release that is still
        missing."""
        kind = step.kind
        partners = NO_PARTNERS
        if kind in (WAIT, CROSS_WAIT):
            tokens = core.tokens.get(step.event if kind == WAIT else step.number)
            if not tokens:
                return False
            partners = tokens.popleft()
        elif kind == JOIN and step.number >= 0:
            release = core.unit_flags.places[step.other].get(step.number)
            if release is None:
                return False
            partners = (release,)
        here = len(self.steps)
        self.steps.append(core.place, step, number, partners)
        if kind == SET:
            core.tokens.setdefault(step.event, deque()).append((here,))
        elif kind == RELEASE:
            core.unit_flags.places[step.pipe][step.number] = here
        elif kind == CROSS_SET:
            receivers, sets = self._rendezvous.arrive(core.identity, step.number, step.group, here)
            for receiver in receivers:
                target = self._place[receiver]
                waiting = target.tokens.setdefault(step.number, deque())
                waiting.append(tuple(sets))  # type: ignore[arg-type]  # the tokens are the positions passed to ``arrive``
                if len(waiting) > self.limit:
                    self.overflowed.append((target.place, step.number, here))
        return True
