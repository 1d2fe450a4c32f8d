"""A timing walk that records when each step began and ended, and why then: the basis of the critical path.

Each moment of a step is determined by another moment: the start of a multiplication by the end of the one before, the end of a
wait by the set, and the set by the last result before it. Following these predecessors from the end of the block leads to its
start, and each interval on the way has one reason.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import NamedTuple

from tilelang_npu.simulator.machine.core_coroutines import CoreId
from tilelang_npu.simulator.machine.op_records import OpRecord, Stream, number_of
from tilelang_npu.simulator.time.pipe_steps import (
    ALL,
    BARRIER,
    CROSS_SET,
    CROSS_WAIT,
    INTERNAL,
    JOIN,
    PIPES,
    RUN,
    SET,
    WAIT,
    Expansion,
    PipeStep,
)
from tilelang_npu.simulator.time.step_order import Ordered, StepOrder
from tilelang_npu.simulator.time.timing import BlockTiming, CoreClock, Pace, PipeClock, StepMethod, TimedWalk, shared_cycles
from tilelang_npu.target import Chip

ISSUED, START, FREE, DONE, FIRED, AFTER = range(6)
"""The moments of a step: the scalar unit issues it; it starts on its pipe; the pipe takes the next step; its result is
available; its event or flag is set; the scalar unit continues after it."""


class Moment(NamedTuple):
    """A moment of a step, by the position of the step in the order."""

    place: int
    which: int


class Point(NamedTuple):
    """The moments of a step, in cycles from the start of the block, and their predecessors.

    Attributes:
        times: by moment.
        issued_by: predecessor of ``ISSUED``: the step before on its core, or the start of another step if the queue was full;
            None for a core's first step.
        start_by: predecessor of ``START``.
        end_by: predecessor of ``FREE`` of a barrier or join, of ``FIRED`` of a set, of ``AFTER`` of a barrier of all pipes.
        due: when the step could have started without waiting.
    """

    times: tuple[float, float, float, float, float, float]
    issued_by: Moment | None
    start_by: Moment
    end_by: Moment
    due: float


class Slice(NamedTuple):
    """An executed step on a pipe, for the timeline: cycles from the start of the block."""

    core: int
    pipe: int
    start: float
    end: float
    event: int
    nbytes: int
    reason: str


class Segment(NamedTuple):
    """A part of the critical path: cycles from the start of the block, and the moment at its end."""

    start: float
    end: float
    moment: Moment


class RecordedWalk(TimedWalk):
    """A timing walk over a step order, taken when it is created.

    Attributes:
        points: the moments of each step, by its position in the order.
    """

    def __init__(self, order: StepOrder, cores: int, chip: Chip, pace: Pace) -> None:
        super().__init__(order, cores, chip, pace)
        self.points: list[Point] = []
        self._before: list[Moment | None] = [None] * cores  # the moment that lets the core's scalar unit continue
        self._after = [0.0] * cores
        self._finisher = [[-1] * len(PIPES) for _ in range(cores)]  # the step with the last result of a pipe
        self._holder = [[-1] * len(PIPES) for _ in range(cores)]  # the step that held a pipe last
        self._queued = [[deque([-1] * chip.sync.queue, chip.sync.queue) for _ in PIPES] for _ in range(cores)]
        self.walk()
        self.timing: BlockTiming = self.times()

    # -- the walk ------------------------------------------------------------------------------------------------------

    def _issue(self, core: int, issued: float, step: PipeStep) -> Moment | None:
        """Returns the predecessor of a step's issue."""
        spent = self.chip.scalar.issue + self.chip.scalar.alu * step.scalars
        if issued > self._after[core] + spent:
            return Moment(self._queued[core][step.pipe][0], START)
        return self._before[core]

    def _note(self, clock: CoreClock, place: int, moments: tuple[float, float, float, float, float], issued_by: Moment | None,
              start_by: Moment, end_by: Moment, due: float) -> None:
        self.points.append(Point((*moments, clock.issue), issued_by, start_by, end_by, due))
        self._before[clock.number] = Moment(place, AFTER)
        self._after[clock.number] = clock.issue

    def step_methods(self) -> tuple[StepMethod, ...]:
        """Returns methods that take a step and record its moments."""
        return tuple(partial(self._take, method) for method in super().step_methods())

    def _take(self, method: StepMethod, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...],
              ) -> float:
        """Takes a step, and records its moments and their predecessors."""
        core, number, issued, done = pipe.clock.number, pipe.number, pipe.clock.issue, pipe.done
        start_by = Moment(self._holder[core][number], FREE) if start > issued else Moment(place, ISSUED)
        issued_by = self._issue(core, issued, step)
        awaited = pipe.clock.pipes[step.other] if step.kind == JOIN else pipe
        # the earlier work that a barrier, a join or a set waits for
        end_by = Moment(self._finisher[core][awaited.number], DONE) if awaited.done > start else Moment(place, START)
        began = method(pipe, start, step, place, partners)
        if began > start:
            start_by = Moment(max(partners, key=self.fired.__getitem__), FIRED)
        free = finished = fired = began
        if step.kind == RUN:
            free, finished = pipe.free, began + shared_cycles(step.cost, self.pace)[1]
            fired = finished
        elif step.kind in (SET, CROSS_SET):
            free, fired = (began if step.kind == SET else pipe.free), self.fired[place]
        elif step.kind in (BARRIER, JOIN):
            free = finished = fired = pipe.free
        if step.kind in (RUN, WAIT, CROSS_WAIT):
            end_by = start_by
            if pipe.done > done:
                self._finisher[core][number] = place
        if step.kind != SET:
            self._holder[core][number] = place
        self._queued[core][number].append(place)
        self._note(pipe.clock, place, (issued, began, free, finished, fired), issued_by, start_by, end_by, start)
        return began

    def drain_all(self, clock: CoreClock, step: PipeStep, place: int) -> None:
        """Holds the scalar unit until the earlier work of all pipes is done."""
        issued, last = clock.issue, self._end_of(clock, Moment(place, ISSUED))
        before = self._before[clock.number]
        super().drain_all(clock, step, place)
        here = Moment(place, ISSUED)
        self._note(clock, place, (issued, issued, clock.issue, clock.issue, clock.issue), before, here, last, issued)

    def _end_of(self, clock: CoreClock, issue: Moment | None) -> Moment:
        """Returns the moment at which all issued work of a core is done."""
        ways = [(clock.issue, issue)] if issue is not None else []
        for pipe, finisher, holder in zip(clock.pipes, self._finisher[clock.number], self._holder[clock.number], strict=True):
            ways += [(pipe.done, Moment(finisher, DONE))] if finisher >= 0 else []
            ways += [(pipe.free, Moment(holder, FREE))] if holder >= 0 else []
        return max(ways, key=lambda way: way[0])[1]

    # -- results -------------------------------------------------------------------------------------------------------

    def time(self, moment: Moment) -> float:
        """Returns the time of a moment, in cycles from the start of the block."""
        return self.points[moment.place].times[moment.which]

    def decided_by(self, moment: Moment) -> Moment | None:
        """Returns the predecessor of a moment; None at the start of the block."""
        place, which = moment
        point, step = self.points[place], self.order.steps[place].step
        if which == ISSUED:
            return point.issued_by
        if which == START:
            return point.start_by
        if which == FIRED or (which == FREE and step.kind in (BARRIER, JOIN)):
            return point.end_by
        if which == AFTER:
            if step.pipe == ALL:
                return point.end_by
            own = FREE if point.times[AFTER] > point.times[ISSUED] else ISSUED
            return Moment(place, own)
        return Moment(place, START)

    def critical_path(self) -> list[Segment]:
        """Returns the critical path, from the start of the block to its end without gaps."""
        if not self.points:
            return []
        last = max(self.clocks, key=lambda clock: clock.drained())
        moment: Moment | None = self._end_of(last, self._before[last.number])
        found = []
        while moment is not None:
            before = self.decided_by(moment)
            start = self.time(before) if before is not None else 0.0
            end = self.time(moment)
            if end > start:
                found.append(Segment(start, end, moment))
            moment = before
        found.reverse()
        return found

    def work_before(self, place: int) -> int:
        """Returns the step whose result a set waited for; -1 if it only waited to be issued."""
        moment: Moment | None = self.points[place].end_by
        while moment is not None and moment.which not in (ISSUED, AFTER):
            if self.order.steps[moment.place].step.kind == RUN:
                return moment.place
            moment = self.decided_by(moment)
        return -1


class CoreGroup(NamedTuple):
    """Cores that run concurrently, with their streams, the steps of the events, and the records of the ops."""

    cores: list[CoreId]
    streams: list[Stream]
    expansions: list[Expansion]
    records: list[tuple[OpRecord, ...]]


class CoreGroupTimes(NamedTuple):
    """Cores that run concurrently, and the walk over their steps."""

    walked: RecordedWalk
    together: CoreGroup

    def record(self, piece: Slice | Ordered) -> OpRecord:
        """Returns the record of the op of a slice or a step."""
        event = piece.event if isinstance(piece, Slice) else piece.number
        return self.together.records[piece.core][number_of(self.together.streams[piece.core][event])]

    @property
    def slices(self) -> list[Slice]:
        """The executed steps, each cut off where its pipe starts the next one, with the reason of its delay."""
        found: list[Slice] = []
        last: dict[tuple[int, int], int] = {}
        reasons: dict[tuple[int, int], str] = {}
        for place, point in enumerate(self.walked.points):
            ordered = self.walked.order.steps[place]
            core, step = ordered.core, ordered.step
            lane = core, step.pipe
            start = point.times[START]
            if step.pipe == ALL:
                continue
            if step.kind == RUN:
                before = last.get(lane)
                if before is not None and found[before].end > start:
                    found[before] = found[before]._replace(end=start)
                last[lane] = len(found)
                said = reasons.pop(lane, "")
                found.append(Slice(core, step.pipe, start, point.times[DONE], ordered.number, step.cost.nbytes,
                                   said if start > point.times[ISSUED] else ""))
            elif ordered.partners and start > point.due:
                reasons[lane] = self._reason(step, self.walked.order.steps[ordered.partners[-1]])
            elif step.kind == BARRIER:
                reasons[lane] = f"pipe_barrier[{PIPES[step.pipe]}]"
        return found

    def _reason(self, wait: PipeStep, setter: Ordered) -> str:
        """Returns what a wait waited for, in words."""
        location = self.record(setter).location
        line = f" at line {location.line}" if location is not None else ""
        if wait.kind == CROSS_WAIT:
            return f"flag {wait.number} set{line}"
        if setter.step.number >= INTERNAL:
            return "L0A and L0B" if setter.step.pipe == PIPES.index("MTE1") else "a free half of L0A and L0B"
        return f"event {setter.step.number} of {PIPES[setter.step.pipe]} set{line}"
