"""The steps of an op on its pipes: most ops are one step, the matmul macro is many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tilelang_npu.simulator.machine.op_records import (
    Barrier,
    CrossSet,
    CrossWait,
    Event,
    EventSet,
    EventWait,
    Mmad,
    Nothing,
    OpRecord,
    Scalars,
    Transfer,
    number_of,
    value,
)
from tilelang_npu.simulator.time.cost import Cost, CostModel

RUN, SET, WAIT, BARRIER, CROSS_SET, CROSS_WAIT, JOIN = range(7)
"""The kinds of steps: execute; set an event; wait for an event; drain one pipe or all; set a flag between cores; wait for one;
hold a pipe until another is drained."""
PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
"""Pipes of a core, in the order of their numbers."""
PIPE = {name: number for number, name in enumerate(PIPES)}
ALL = -1
NO_PLACE = -1
_FREE_OF_COST = Cost(0.0, 0.0, 0)


class PipeStep(NamedTuple):
    """A step of an op.

    Attributes:
        kind: one of the kinds above.
        pipe: the pipe that executes, is held or is drained (``ALL``: every pipe), or whose work a set follows.
        other: for an event the pipe at its other end; for ``JOIN`` the pipe that must be drained.
        number: of the event or flag.
        cost: for ``RUN``.
        accesses: for ``RUN``, the numbers of the op's accesses that it makes.
        group: for ``CROSS_SET``, the cores that receive it.
        op: number of the op's record.
        place: for an event that the matmul macro takes from outside, its position in ``sync_related_args``.
        scalars: scalar instructions that run before it.
    """

    kind: int
    pipe: int
    other: int = -1
    number: int = 0
    cost: Cost = _FREE_OF_COST
    accesses: tuple[int, ...] = ()
    group: str = ""
    place: int = NO_PLACE
    op: int = -1
    scalars: int = 0

    @property
    def event(self) -> tuple[int, int, int]:
        """For ``SET`` and ``WAIT``: the pipe that sets the event, the pipe that waits for it, and its number."""
        return (self.pipe, self.other, self.number) if self.kind == SET else (self.other, self.pipe, self.number)


INTERNAL = 100
"""Events from this number on belong to the matmul macro itself."""
_READY = INTERNAL
"""MTE1 has filled a half of L0."""
_FREE = 110
"""M has emptied a half of L0, where the macro guards the halves itself."""
_ENTRY = 120
"""M has finished the work before the macro."""


class Expansion:
    """The steps of the events of one function, computed once per distinct event."""

    def __init__(self, records: Sequence[OpRecord], costs: CostModel) -> None:
        self.records = records
        self._costs = costs
        self._known: dict[Event, tuple[PipeStep, ...]] = {}

    def of(self, event: Event) -> tuple[PipeStep, ...]:
        """Returns the steps of an event."""
        found = self._known.get(event)
        if found is None:
            record = self.records[number_of(event)]
            found = self._known[event] = tuple(
                PipeStep(*step[:-2], op=record.number, scalars=0 if place else record.scalars)
                for place, step in enumerate(self._expand(record, event)))
        return found

    def _expand(self, record: OpRecord, event: Event) -> list[PipeStep]:
        work = record.work
        if isinstance(work, EventSet):
            return [PipeStep(SET, PIPE[work.source], PIPE[work.target], value(work.event, event))]
        if isinstance(work, EventWait):
            return [PipeStep(WAIT, PIPE[work.target], PIPE[work.source], value(work.event, event))]
        if isinstance(work, Barrier):
            return [PipeStep(BARRIER, ALL if work.pipe == "ALL" else PIPE[work.pipe])]
        if isinstance(work, CrossSet):
            return [PipeStep(CROSS_SET, PIPE[work.pipe], number=value(work.flag, event), group=work.group)]
        if isinstance(work, CrossWait):
            return [PipeStep(CROSS_WAIT, PIPE[work.pipe], number=value(work.flag, event))]
        if isinstance(work, Nothing):
            return []
        if isinstance(work, Scalars):
            return [PipeStep(RUN, PIPE["S"])]
        if isinstance(work, Mmad):
            return self._macro(record, work, event)
        run = _run(PIPE[record.pipe], self._costs.cost(record, event), *range(len(record.accesses)))
        if isinstance(work, Transfer) and work.unit_flag:
            return [PipeStep(JOIN, PIPE["FIX"], PIPE["M"]), run]
        return [run]

    def _macro(self, record: OpRecord, work: Mmad, event: Event) -> list[PipeStep]:
        """Returns the steps of the matmul macro: loads from L1 to L0A and L0B by MTE1 and multiplications by M, chunk by chunk
        of K, alternating between the halves of L0."""
        load, mult = PIPE["MTE1"], PIPE["M"]
        move = PIPE["MTE2"]
        m, k, n = (value(size, event) for size in (work.m, work.k, work.n))
        chunks = self._costs.chunks(work, m, k, n)
        halves = [value(half, event) for half in work.halves]
        guarded = min(halves) >= 0
        phase = value(work.phase, event)
        first = phase * len(chunks) % 2 if phase >= 0 else 0
        wait_a, wait_b = (value(wait, event) for wait in work.waits)
        free_a, free_b = (value(free, event) for free in work.frees)
        steps: list[PipeStep] = []
        if work.unit_flag:
            steps.append(PipeStep(JOIN, mult, PIPE["FIX"]))
        if not guarded:
            steps += [PipeStep(SET, mult, load, _ENTRY), PipeStep(WAIT, load, mult, _ENTRY)]
        last = len(chunks) - 1
        for number, depth in enumerate(chunks):
            half = (first + number) % 2
            if guarded:
                steps.append(PipeStep(WAIT, load, mult, halves[half]))
            elif number >= 2:
                steps.append(PipeStep(WAIT, load, mult, _FREE + half))
            if number == 0 and wait_a >= 0:
                steps.append(PipeStep(WAIT, load, move, wait_a, place=0))
            steps.append(_run(load, self._costs.load_a(work, m, depth), 0))
            if number == last and free_a >= 0:
                steps.append(PipeStep(SET, load, move, free_a, place=2))
            if number == 0 and wait_b >= 0:
                steps.append(PipeStep(WAIT, load, move, wait_b, place=1))
            steps.append(_run(load, self._costs.load_b(work, depth, n), 1))
            if number == last and free_b >= 0:
                steps.append(PipeStep(SET, load, move, free_b, place=3))
            if number == 0 and work.bias:
                steps.append(_run(load, self._costs.load_bias(n), 3))
            steps += [PipeStep(SET, load, mult, _READY + half), PipeStep(WAIT, mult, load, _READY + half),
                      _run(mult, self._costs.multiply(work, m, depth, n), 2)]
            if guarded:
                steps.append(PipeStep(SET, mult, load, halves[half]))
            elif number + 2 <= last:
                steps.append(PipeStep(SET, mult, load, _FREE + half))
        return steps


Change = Callable[[OpRecord, PipeStep], PipeStep | None]
"""Returns a step of an op as it would be under other conditions; None if it would not exist."""


class ChangedExpansion(Expansion):
    """The steps of the events of one function under other conditions.

    Args:
        change: changes or removes a step.
        records, costs: as for ``Expansion``.
    """

    def __init__(self, change: Change, records: Sequence[OpRecord], costs: CostModel) -> None:
        super().__init__(records, costs)
        self._change = change
        self._changed: dict[Event, tuple[PipeStep, ...]] = {}

    def of(self, event: Event) -> tuple[PipeStep, ...]:
        """Returns the steps of an event."""
        found = self._changed.get(event)
        if found is None:
            record = self.records[number_of(event)]
            steps = (self._change(record, step) for step in super().of(event))
            found = self._changed[event] = tuple(step for step in steps if step is not None)
        return found


def scaled_work(step: PipeStep, factor: float) -> PipeStep:
    """Returns a step that takes a multiple of its cycles."""
    return step._replace(cost=replace(step.cost, busy=step.cost.busy * factor, done=step.cost.done * factor))


def _run(pipe: int, cost: Cost, *accesses: int) -> PipeStep:
    return PipeStep(RUN, pipe, cost=cost, accesses=accesses)
