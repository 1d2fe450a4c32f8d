"""A timing walk that records when each step started and ended and what determined these times; the critical path follows from
it.

A step is one action of an op on one pipe. Its *moments* are the times at which it is issued, starts, ends, and so on. Each
moment is determined by an earlier moment, its *predecessor*: the start of a multiplication by the end of the previous one, the
end of a wait by the set, and the set by the last result before it. The chain of predecessors from the end of the block to its
start is the critical path, and each interval between two moments on it has one reason.
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
    PIPE,
    RELEASE,
    RUN,
    SET,
    WAIT,
    Expansion,
    PipeStep,
)
from tilelang_npu.simulator.time.step_order import Ordered, StepOrder
from tilelang_npu.simulator.time.timing import BlockTiming, CoreClock, Pace, PipeClock, StepMethod, TimedWalk, shared_cycles
from tilelang_npu.target import Chip
from tilelang_npu.target.chip_data import PIPES

ISSUED, START, FREE, DONE, FIRED, AFTER = range(6)
"""The moments of a step: ``ISSUED``, the scalar unit has issued the step; ``START``, the step starts on its pipe; ``FREE``, the
pipe can start its next step; ``DONE``, the step's result is available; ``FIRED``, the event or flag that the step sets has
taken effect; ``AFTER``, the scalar unit can continue with the next step."""


class Moment(NamedTuple):
    """A moment of a step.

    Attributes:
        place: the position of the step in the step order.
        which: the kind of moment, such as ``START``.
    """

    place: int
    which: int


class Point(NamedTuple):
    """The times of a step's moments, in cycles from the start of the block, and the predecessors of the moments.

    Attributes:
        times: the time of each moment, at the moment's index.
        issued_by: the predecessor of ``ISSUED``: the previous step of the core, or the start of an earlier step of the same
            pipe if the pipe's queue was full; None for the first step of a core.
        start_by: the predecessor of ``START``.
        end_by: the predecessor of ``FREE`` for a barrier of one pipe, of ``FIRED`` for a set or a release, of ``AFTER`` for a
            barrier of all pipes.
        due: the time at which the step could have started if it had not had to wait for a set.
    """

    times: tuple[float, float, float, float, float, float]
    issued_by: Moment | None
    start_by: Moment
    end_by: Moment
    due: float


class Slice(NamedTuple):
    """An executed step on a pipe, for the timeline.

    Attributes:
        core: the position of the core.
        pipe: the number of the pipe.
        start: the start, in cycles from the start of the block.
        end: the end, in cycles from the start of the block.
        event: the position, in the core's stream, of the executed op that the step belongs to.
        nbytes: the bytes that the step moves or computes on.
        reason: what delayed the start, as text; empty if nothing did.
    """

    core: int
    pipe: int
    start: float
    end: float
    event: int
    nbytes: int
    reason: str


class Flow(NamedTuple):
    """The way from the work that a set waited for to the first work after a wait for it, for the timeline.

    Attributes:
        first, second: the positions of the slices of the two pieces of work.
        name: the event or flag, as text.
        crosses: whether the set and the wait are on different cores.
    """

    first: int
    second: int
    name: str
    crosses: bool


class Segment(NamedTuple):
    """A part of the critical path: its start and end in cycles from the start of the block, and the moment at its end."""

    start: float
    end: float
    moment: Moment


class RecordedWalk(TimedWalk):
    """A timing walk over a step order that records the moments of all steps; the constructor performs the walk.

    Args:
        order: the ordered steps of the cores.
        cores: the number of cores.
        chip: the chip, for the cycles of issue, events, barriers and flags.
        pace: the speed of transfers in GM.

    Attributes:
        points: the moments of each step, by the position of the step in the order.
        timing: the times of the cores.
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
        """Returns the predecessor of a step's ``ISSUED`` moment."""
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
        """Returns, for each kind of step, a function that times the step and records its moments."""
        return tuple(partial(self._take, method) for method in super().step_methods())

    def _take(self, method: StepMethod, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...],
              ) -> float:
        """Times a step with ``method``, and records its moments and their predecessors."""
        core, number, issued, done = pipe.clock.number, pipe.number, pipe.clock.issue, pipe.done
        start_by = Moment(self._holder[core][number], FREE) if start > issued else Moment(place, ISSUED)
        issued_by = self._issue(core, issued, step)
        # the earlier work that a barrier, a release or a set waits for
        end_by = Moment(self._finisher[core][number], DONE) if pipe.done > start else Moment(place, START)
        began = method(pipe, start, step, place, partners)
        if began > start:
            start_by = Moment(max(partners, key=self.fired.__getitem__), FIRED)
        free = finished = fired = began
        if step.kind == RUN:
            free, finished = pipe.free, began + shared_cycles(step.cost, self.pace)[1]
            fired = finished
        elif step.kind in (SET, CROSS_SET, RELEASE):
            free, fired = (pipe.free if step.kind == CROSS_SET else began), self.fired[place]
        elif step.kind == BARRIER:
            free = finished = fired = pipe.free
        if step.kind in (RUN, WAIT, CROSS_WAIT, JOIN):
            end_by = start_by
            if pipe.done > done:
                self._finisher[core][number] = place
        if step.kind not in (SET, RELEASE):
            self._holder[core][number] = place
        self._queued[core][number].append(place)
        self._note(pipe.clock, place, (issued, began, free, finished, fired), issued_by, start_by, end_by, start)
        return began

    def drain_all(self, clock: CoreClock, step: PipeStep, place: int) -> None:
        """Times a barrier of all pipes, which holds the scalar unit until their earlier work is done, and records its
        moments."""
        issued, last = clock.issue, self._end_of(clock, Moment(place, ISSUED))
        before = self._before[clock.number]
        super().drain_all(clock, step, place)
        here = Moment(place, ISSUED)
        self._note(clock, place, (issued, issued, clock.issue, clock.issue, clock.issue), before, here, last, issued)

    def _end_of(self, clock: CoreClock, issue: Moment | None) -> Moment:
        """Returns the last moment of all work that a core has issued so far; ``issue`` is the moment that lets the core's
        scalar unit continue."""
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
        """Returns the predecessor of a moment; None for a moment that the start of the block determines."""
        place, which = moment
        point, step = self.points[place], self.order.steps[place].step
        if which == ISSUED:
            return point.issued_by
        if which == START:
            return point.start_by
        if which == FIRED or (which == FREE and step.kind == BARRIER):
            return point.end_by
        if which == AFTER:
            if step.pipe == ALL:
                return point.end_by
            own = FREE if point.times[AFTER] > point.times[ISSUED] else ISSUED
            return Moment(place, own)
        return Moment(place, START)

    def critical_path(self) -> list[Segment]:
        """Returns the segments of the critical path, from the start of the block to its end without gaps; empty for a block
        without steps."""
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
        """Returns the position in the step order of the executed step whose result a set waited for.

        Returns -1 if the set waited for no result but took effect when it was issued.

        Args:
            place: the position of the set.
        """
        moment: Moment | None = self.points[place].end_by
        while moment is not None and moment.which not in (ISSUED, AFTER):
            if self.order.steps[moment.place].step.kind == RUN:
                return moment.place
            moment = self.decided_by(moment)
        return -1


class CoreGroup(NamedTuple):
    """Cores that run concurrently; all lists have one element for each core.

    Attributes:
        cores: the identity of the core.
        streams: the executed ops of the core, in program order.
        expansions: the steps of these ops.
        records: the records of the ops.
    """

    cores: list[CoreId]
    streams: list[Stream]
    expansions: list[Expansion]
    records: list[tuple[OpRecord, ...]]


class CoreGroupTimes(NamedTuple):
    """Cores that run concurrently, and the times of their steps.

    Attributes:
        walked: the timing walk over the steps of the cores.
        together: the cores.
    """

    walked: RecordedWalk
    together: CoreGroup

    def record(self, piece: Slice | Ordered) -> OpRecord:
        """Returns the record of the op of a slice or a step."""
        event = piece.event if isinstance(piece, Slice) else piece.number
        return self.together.records[piece.core][number_of(self.together.streams[piece.core][event])]

    @property
    def slices(self) -> list[Slice]:
        """The executed steps as slices of a timeline. A slice ends at the latest when its pipe starts the next step."""
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

    @property
    def flows(self) -> list[Flow]:
        """The flows between the slices of :attr:`slices`: one for each wait for an event or a flag of the kernel that follows
        work and precedes work. Events inside of the matmul macro are left out.

        The work after a wait is the next work of the waiting pipe; after a wait of the scalar unit, which issues all work, it
        is the next work of the core.
        """
        steps = self.walked.order.steps
        found: list[Flow] = []
        by_place: dict[int, int] = {}
        pending: dict[tuple[int, int], list[tuple[int, str, bool]]] = {}
        for place, ordered in enumerate(steps):
            core, step = ordered.core, ordered.step
            lane = core, step.pipe
            if step.kind == RUN and step.pipe != ALL:
                by_place[place] = len(by_place)
                for waiting in dict.fromkeys((lane, (core, PIPE["S"]))):
                    found += [Flow(first, by_place[place], name, crosses) for first, name, crosses in pending.pop(waiting, ())]
            for partner in ordered.partners if step.number < INTERNAL else ():
                setter, work = steps[partner], self.walked.work_before(partner)
                if work in by_place:
                    name = (f"flag {step.number}" if step.kind == CROSS_WAIT else
                            f"event {step.number}, {PIPES[setter.step.pipe]} to {PIPES[step.pipe]}")
                    pending.setdefault(lane, []).append((by_place[work], name, setter.core != core))
        return found

    def _reason(self, wait: PipeStep, setter: Ordered) -> str:
        """Returns a text that names the set that a wait waited for."""
        location = self.record(setter).location
        line = f" at line {location.line}" if location is not None else ""
        if wait.kind == CROSS_WAIT:
            return f"flag {wait.number} set{line}"
        if setter.step.number >= INTERNAL:
            return "L0A and L0B" if setter.step.pipe == PIPES.index("MTE1") else "a free half of L0A and L0B"
        return f"event {setter.step.number} of {PIPES[setter.step.pipe]} set{line}"
