"""A walk over the steps of a block that keeps when each began and ended, and what decided that.

Each moment of a step follows from another moment of some step: the start of a multiplication from the end of the one before,
the release of a wait from the set, that from the last result in front of it. So whoever goes back from the end of the block
comes to its beginning, and what lies between two moments has one reason.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from tilelang_npu.simulator.machine.events import OpRecord, Stream, number_of
from tilelang_npu.simulator.machine.running_cores import CoreId
from tilelang_npu.simulator.time.schedule import Ordered, StepOrder
from tilelang_npu.simulator.time.steps import ALL, BARRIER, CROSS_WAIT, INTERNAL, JOIN, PIPES, RUN, Expansion, PipeStep
from tilelang_npu.simulator.time.timing import BlockTiming, CoreClock, Pace, PipeClock, TimedWalk, beside
from tilelang_npu.target import Chip

ISSUED, START, FREE, DONE, FIRED, AFTER = range(6)
"""The moments of a step: the scalar unit hands it on; it takes its pipe; the pipe takes the next; its result is there; what it
sets is set; the scalar unit goes on behind it."""


class Moment(NamedTuple):
    """A moment of a step, by the step's place in the order."""

    place: int
    which: int


class Point(NamedTuple):
    """The moments of a step, in cycles from the start of the block, and those that decided them.

    Attributes:
        times: by moment.
        issued_by: what decided ``ISSUED``: the step before on its core, or, with its queue full, the start of another; None
            for a core's first step.
        start_by: what decided ``START``.
        end_by: what decided ``FREE`` of a barrier or join, ``FIRED`` of a set, ``AFTER`` of a barrier of all pipes.
        due: when it could have started, had it nothing to wait for.
    """

    times: tuple[float, float, float, float, float, float]
    issued_by: Moment | None
    start_by: Moment
    end_by: Moment
    due: float


class Slice(NamedTuple):
    """A step on a pipe, for the trace: cycles from the start of the block."""

    core: int
    pipe: int
    start: float
    end: float
    event: int
    nbytes: int
    reason: str


class Segment(NamedTuple):
    """A part of the critical path: cycles from the start of the block, and the moment that it leads to."""

    start: float
    end: float
    moment: Moment


class Walked(TimedWalk):
    """A walk that has been taken.

    Attributes:
        points: of the steps, by place in the order.
    """

    def __init__(self, order: StepOrder, cores: int, chip: Chip, pace: Pace) -> None:
        super().__init__(order, cores, chip, pace)
        self.points: list[Point] = []
        self._before: list[Moment | None] = [None] * cores  # what decides when the core's scalar unit goes on
        self._after = [0.0] * cores
        self._finisher = [[-1] * len(PIPES) for _ in range(cores)]  # whose result is the last one
        self._holder = [[-1] * len(PIPES) for _ in range(cores)]  # who held the pipe last
        self._queued = [[deque([-1] * chip.sync.queue, chip.sync.queue) for _ in PIPES] for _ in range(cores)]
        self.walk()
        self.timing: BlockTiming = self.times()

    # -- the walk ------------------------------------------------------------------------------------------------------

    def _issue(self, core: int, issued: float, step: PipeStep) -> Moment | None:
        """What decided when a step was issued."""
        spent = self.chip.scalar.issue + self.chip.scalar.alu * step.scalars
        if issued > self._after[core] + spent:
            return Moment(self._queued[core][step.pipe][0], START)
        return self._before[core]

    def _note(self, clock: CoreClock, place: int, moments: tuple[float, float, float, float, float], issued_by: Moment | None,
              start_by: Moment, end_by: Moment, due: float) -> None:
        self.points.append(Point((*moments, clock.issue), issued_by, start_by, end_by, due))
        self._before[clock.number] = Moment(place, AFTER)
        self._after[clock.number] = clock.issue

    def _last(self, pipe: PipeClock, start: float, place: int) -> Moment:
        """What decides when the earlier work of a pipe is done, for a step that starts then."""
        if pipe.done > start:
            return Moment(self._finisher[pipe.clock.number][pipe.number], DONE)
        return Moment(place, START)

    def _taken(self, pipe: PipeClock, start: float, place: int) -> tuple[float, Moment]:
        """When a step was issued, and what decides when it takes the pipe."""
        issued = pipe.clock.issue
        if start > issued:
            return issued, Moment(self._holder[pipe.clock.number][pipe.number], FREE)
        return issued, Moment(place, ISSUED)

    def run(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Execute."""
        core, number = pipe.clock.number, pipe.number
        issued, taken = self._taken(pipe, start, place)
        issued_by = self._issue(core, issued, step)
        done = pipe.done
        super().run(pipe, start, step, place, partners)
        if pipe.done > done:
            self._finisher[core][number] = place
        self._holder[core][number] = place
        self._queued[core][number].append(place)
        finish = start + beside(step.cost, self.pace)[1]
        self._note(pipe.clock, place, (issued, start, pipe.free, finish, finish), issued_by, taken, taken, start)
        return start

    def wait(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Hold the pipe until all that it waits for is set."""
        core, number = pipe.clock.number, pipe.number
        issued, taken = self._taken(pipe, start, place)
        issued_by = self._issue(core, issued, step)
        done = pipe.done
        released = super().wait(pipe, start, step, place, partners)
        if released > start:
            taken = Moment(max(partners, key=lambda partner: self.fired[partner]), FIRED)
        if released > done:
            self._finisher[core][number] = place
        self._holder[core][number] = place
        self._queued[core][number].append(place)
        self._note(pipe.clock, place, (issued, released, released, released, released), issued_by, taken, taken, start)
        return released


    def set_event(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Set an event once the earlier work of the pipe is done."""
        issued, taken = self._taken(pipe, start, place)
        issued_by = self._issue(pipe.clock.number, issued, step)
        super().set_event(pipe, start, step, place, partners)
        self._set(pipe, place, issued, start, start, issued_by, taken)
        return start

    def set_flag(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Set a flag between cores once the earlier work of the pipe is done."""
        issued, taken = self._taken(pipe, start, place)
        issued_by = self._issue(pipe.clock.number, issued, step)
        super().set_flag(pipe, start, step, place, partners)
        self._holder[pipe.clock.number][pipe.number] = place
        self._set(pipe, place, issued, start, pipe.free, issued_by, taken)
        return start

    def _set(self, pipe: PipeClock, place: int, issued: float, start: float, free: float, issued_by: Moment | None,
             taken: Moment) -> None:
        self._queued[pipe.clock.number][pipe.number].append(place)
        self._note(pipe.clock, place, (issued, start, free, start, self.fired[place]), issued_by, taken,
                   self._last(pipe, start, place), start)

    def drain(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Hold the pipe until its earlier work is done."""
        issued, taken = self._taken(pipe, start, place)
        issued_by, last = self._issue(pipe.clock.number, issued, step), self._last(pipe, start, place)
        super().drain(pipe, start, step, place, partners)
        self._held(pipe, place, issued, start, issued_by, taken, last)
        return start

    def join(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Hold the pipe until the earlier work of another is done."""
        issued, taken = self._taken(pipe, start, place)
        issued_by, last = self._issue(pipe.clock.number, issued, step), self._last(pipe.clock.pipes[step.other], start, place)
        super().join(pipe, start, step, place, partners)
        self._held(pipe, place, issued, start, issued_by, taken, last)
        return start

    def _held(self, pipe: PipeClock, place: int, issued: float, start: float, issued_by: Moment | None, taken: Moment,
              last: Moment) -> None:
        self._holder[pipe.clock.number][pipe.number] = place
        self._queued[pipe.clock.number][pipe.number].append(place)
        self._note(pipe.clock, place, (issued, start, pipe.free, pipe.free, pipe.free), issued_by, taken, last, start)

    def drain_all(self, clock: CoreClock, step: PipeStep, place: int) -> None:
        """Hold the scalar unit until the earlier work of all pipes is done."""
        issued, last = clock.issue, self._end_of(clock, Moment(place, ISSUED))
        before = self._before[clock.number]
        super().drain_all(clock, step, place)
        here = Moment(place, ISSUED)
        self._note(clock, place, (issued, issued, clock.issue, clock.issue, clock.issue), before, here, last, issued)

    def _end_of(self, clock: CoreClock, issue: Moment | None) -> Moment:
        """What decides when all that a core has issued is done."""
        ways = [(clock.issue, issue)] if issue is not None else []
        for pipe, finisher, holder in zip(clock.pipes, self._finisher[clock.number], self._holder[clock.number], strict=True):
            ways += [(pipe.done, Moment(finisher, DONE))] if finisher >= 0 else []
            ways += [(pipe.free, Moment(holder, FREE))] if holder >= 0 else []
        return max(ways, key=lambda way: way[0])[1]

    # -- what it tells -------------------------------------------------------------------------------------------------

    def time(self, moment: Moment) -> float:
        """When it was, in cycles from the start of the block."""
        return self.points[moment.place].times[moment.which]

    def decided_by(self, moment: Moment) -> Moment | None:
        """The moment that decides when another one is; None at the start of the block."""
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
        """What the last result of the block waited for, and that for, back to the start: each begins where the one before
        ended, the first at zero, and the last ends with the block."""
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
        """The step whose result a set waited for; -1 where it waited for none, but for the scalar unit to come to it."""
        moment: Moment | None = self.points[place].end_by
        while moment is not None and moment.which not in (ISSUED, AFTER):
            if self.order.steps[moment.place].step.kind == RUN:
                return moment.place
            moment = self.decided_by(moment)
        return -1


class Together(NamedTuple):
    """Cores that run together: who they are, their events, what the steps of these are, and what is known of their ops."""

    cores: list[CoreId]
    streams: list[Stream]
    expansions: list[Expansion]
    records: list[tuple[OpRecord, ...]]


class TracedTimes(NamedTuple):
    """Cores that run together, and the walk over their steps."""

    walked: Walked
    together: Together

    def record(self, piece: Slice | Ordered) -> OpRecord:
        """What is known of the op of a slice, or of a step."""
        event = piece.event if isinstance(piece, Slice) else piece.number
        return self.together.records[piece.core][number_of(self.together.streams[piece.core][event])]

    @property
    def slices(self) -> list[Slice]:
        """Each step that executes, cut off where its pipe starts the next one, and what it waited for."""
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
        """What a wait waited for, in words."""
        location = self.record(setter).location
        line = f" at line {location.line}" if location is not None else ""
        if wait.kind == CROSS_WAIT:
            return f"flag {wait.number} set{line}"
        if setter.step.number >= INTERNAL:
            return "L0A and L0B" if setter.step.pipe == PIPES.index("MTE1") else "a free half of L0A and L0B"
        return f"event {setter.step.number} of {PIPES[setter.step.pipe]} set{line}"
