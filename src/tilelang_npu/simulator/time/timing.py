"""Timing of a block: one walk over its step order.

The scalar unit issues steps in program order, as long as the pipe's queue has room. A pipe starts its steps in order; it takes
the next one while earlier results are still in flight. A set fires when the earlier work of its pipe is done, and holds no
pipe, except for the cycles that a flag to other cores takes to leave; a wait holds its pipe; a barrier drains it.

GM is shared: if other cores use it, a transfer takes at least its bytes times the cycles per byte that this core gets
(``traffic``), plus its latency. Bytes that L2 does not hold take longer on an idle chip too.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from tilelang_npu.simulator.time.cost import Cost
from tilelang_npu.simulator.time.pipe_steps import ALL, PIPES, PipeStep
from tilelang_npu.simulator.time.step_order import StepOrder
from tilelang_npu.target import Chip

SCALAR = 0


class Share(NamedTuple):
    """The share of GM that one of several transfers gets: the miss rate in L2, and the mean cycles per byte of HBM and of
    L2."""

    far: float
    hbm: float
    l2: float


Pace = Mapping[tuple[int, bool], Share]
"""By kernel argument and whether it is written."""


@dataclass
class BlockTiming:
    """The times of the cores of one block (or of all blocks that wait for each other).

    Attributes:
        cycles: until the last core is done.
        cores: the same for each core.
        busy: per core, the cycles in which each pipe has work in flight.
        spans: per core, the start of each pipe's first work and the end of its last; 0 and 0 for none.
        stalled: per core and pipe, the cycles that GM transfers took longer than on an idle chip.
        moving: cycles in which GM transfers are in flight, summed over cores and pipes.
        held: cycles for which waits and barriers held their pipes, by core, number of the op's record, and
            ``PipeStep.place``.
    """

    cycles: float
    cores: list[float]
    busy: list[list[float]]
    spans: list[list[tuple[float, float]]]
    stalled: list[list[float]]
    moving: float
    held: dict[tuple[int, int, int], float] = field(default_factory=dict)


class PipeClock:
    """The clock of one pipe of a core: when it takes its next step, when its work so far is done, and how long it was busy."""

    __slots__ = ("busy", "clock", "done", "end", "first", "free", "number", "stalled", "starts")

    def __init__(self, clock: CoreClock, number: int, queue: int) -> None:
        self.clock = clock
        self.number = number
        self.first = self.free = self.done = self.end = 0.0
        self.busy = self.stalled = 0.0
        self.starts = deque([-inf] * queue, queue)  # start times of the steps that fill the pipe's queue


class CoreClock:
    """The clock of one core: when its scalar unit issues the next step, and its pipes."""

    __slots__ = ("issue", "moving", "number", "pipes")

    def __init__(self, number: int, queue: int) -> None:
        self.number = number
        self.issue = 0.0
        self.moving = 0.0
        self.pipes = [PipeClock(self, pipe, queue) for pipe in range(len(PIPES))]

    def drained(self) -> float:
        """Returns the time when all issued work is done."""
        return max(self.issue, *(pipe.done for pipe in self.pipes), *(pipe.free for pipe in self.pipes))


StepMethod = Callable[[PipeClock, float, PipeStep, int, tuple[int, ...]], float]


class TimedWalk:
    """One walk over the steps of a group of cores.

    Each kind of step has a method. It gets the pipe, the earliest cycle in which the step can start, the step, its position in
    the order, and the positions of the sets that it waits for; it returns the start of the step.
    """

    def __init__(self, order: StepOrder, cores: int, chip: Chip, pace: Pace) -> None:
        self.order = order
        self.chip = chip
        self.sync = chip.sync
        self.pace = pace
        self.clocks = [CoreClock(core, chip.sync.queue) for core in range(cores)]
        self.fired = [0.0] * len(order.steps)
        self.held: dict[tuple[int, int, int], float] = defaultdict(float)

    def walk(self) -> None:
        """Visits all steps."""
        alu, issue_cycles = self.chip.scalar.alu, self.chip.scalar.issue
        clocks = self.clocks
        take = self.step_methods()
        for place, (core, step, _, partners) in enumerate(self.order.steps.rows()):
            clock = clocks[core]
            pipes = clock.pipes
            spent = issue_cycles + alu * step.scalars
            issue = clock.issue = clock.issue + spent
            pipes[SCALAR].busy += spent
            if step.pipe == ALL:
                self.drain_all(clock, step, place)
                continue
            pipe = pipes[step.pipe]
            starts = pipe.starts
            if starts[0] > issue:
                issue = clock.issue = starts[0]
            free = pipe.free
            starts.append(take[step.kind](pipe, issue if issue > free else free, step, place, partners))

    def step_methods(self) -> tuple[StepMethod, ...]:
        """Returns the method for each kind of step."""
        return self.run, self.set_event, self.wait, self.drain, self.set_flag, self.wait, self.join

    def times(self) -> BlockTiming:
        """Returns the times."""
        ends = [clock.drained() for clock in self.clocks]
        return BlockTiming(
            max(ends, default=0.0), ends, [[pipe.busy for pipe in clock.pipes] for clock in self.clocks],
            [[(pipe.first, pipe.end) for pipe in clock.pipes] for clock in self.clocks],
            [[pipe.stalled for pipe in clock.pipes] for clock in self.clocks], sum(clock.moving for clock in self.clocks),
            dict(self.held))

    def run(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Executes a step."""
        cost = step.cost
        busy, done = cost.busy, cost.done
        if cost.gm:
            busy, done, late = shared_cycles(cost, self.pace)
            pipe.stalled += late
        pipe.free = start + busy
        if pipe.number == SCALAR:
            pipe.clock.issue = pipe.free
        finish = start + done
        end = pipe.end
        if finish > end:
            if not end:
                pipe.first = start
            added = finish - (start if start > end else end)
            pipe.busy += added
            pipe.end = finish
            if cost.gm:
                pipe.clock.moving += added
        if finish > pipe.done:
            pipe.done = finish
        return start

    def set_event(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Sets an event once the earlier work of the pipe is done."""
        self.fired[place] = (start if start > pipe.done else pipe.done) + self.sync.event
        return start

    def set_flag(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Sets a flag between cores once the earlier work of the pipe is done."""
        self.fired[place] = (start if start > pipe.done else pipe.done) + self.sync.handoff
        pipe.free = start + self.sync.flag
        if pipe.number == SCALAR:
            pipe.clock.issue = pipe.free
        return start

    def wait(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Holds the pipe until everything that it waits for is set."""
        fired = self.fired
        released = fired[partners[0]] if len(partners) == 1 else max(fired[partner] for partner in partners)
        if released > start:
            self.held[pipe.clock.number, step.op, step.place] += released - start
            start = released
        pipe.free = start
        if start > pipe.done:
            pipe.done = start
        if pipe.number == SCALAR:
            pipe.clock.issue = start
        return start

    def drain(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Holds the pipe until its earlier work is done."""
        pipe.free = max(start, pipe.done) + self.sync.barrier
        self.held[pipe.clock.number, step.op, step.place] += pipe.free - start
        if pipe.number == SCALAR:
            pipe.clock.issue = pipe.free
        return start

    def drain_all(self, clock: CoreClock, step: PipeStep, place: int) -> None:
        """Holds the scalar unit until the earlier work of all pipes is done."""
        before = clock.issue
        clock.issue = clock.drained() + self.sync.barrier
        self.held[clock.number, step.op, step.place] += clock.issue - before

    def join(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Holds the pipe until the earlier work of another pipe is done."""
        pipe.free = max(start, pipe.clock.pipes[step.other].done)
        return start


def simulate_times(order: StepOrder, cores: int, chip: Chip, pace: Pace) -> BlockTiming:
    """Returns the times of a group of cores.

    Args:
        order: their steps.
        cores: number of cores.
        chip: gives issue, event, barrier and hand-off cycles.
        pace: the share of GM that each transfer gets.
    """
    walk = TimedWalk(order, cores, chip, pace)
    walk.walk()
    return walk.times()


def shared_cycles(cost: Cost, pace: Pace) -> tuple[float, float, float]:
    """Returns the cycles until the pipe takes the next step and until the result is available, with other cores using GM; and
    the part of the first that the other cores cause."""
    far = shared = 0.0
    for part in cost.gm:
        share = pace.get((part.buffer, part.written))
        if share is not None:
            shared += part.far * share.hbm + part.near * share.l2
            far = max(far, share.far)
    busy, done = cost.busy + far * cost.more_busy, cost.done + far * cost.more_done
    if shared <= busy:
        return busy, done, 0.0
    late = shared - busy
    return shared, max(done, min(cost.latency + shared, done + late)), late  # continuous where sharing begins to matter
