"""The timing of a block: one walk over the ordered steps of its cores. A step is one action of an op on one pipe.

The scalar unit of a core issues steps in program order, as long as the queue of the step's pipe has room. A pipe starts its
steps in order, and can start a step while results of earlier steps are still in flight. A set takes effect when the earlier
work of its pipe is done. It does not hold its pipe, except that a set of a flag between cores holds it for ``Sync.flag``
cycles. A wait holds its pipe until the set has taken effect; a barrier holds its pipe until the pipe's earlier work is done.

All cores share GM: if other cores use it too, a transfer takes at least its bytes times the cycles per byte that it gets
(``gm_traffic``), plus its latency. Bytes that miss L2 take longer even if no other core uses GM.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from tilelang_npu.simulator.time.cost import LINK, Cost
from tilelang_npu.simulator.time.periodic_order import Period, PeriodicOrder
from tilelang_npu.simulator.time.pipe_steps import ALL, PIPE, PipeStep
from tilelang_npu.simulator.time.step_order import StepOrder
from tilelang_npu.target import Chip
from tilelang_npu.target.chip_data import PIPES

SCALAR, VECTOR = 0, PIPE["V"]


class Share(NamedTuple):
    """The speed of the transfers of one tensor in GM while other transfers are in flight.

    The cycles per byte are means over all transferred bytes of the tensor: bytes that hit L2 count 0 for HBM, and bytes that
    miss L2 count 0 for L2. The other transfers in flight make these numbers larger.

    Attributes:
        far: the share of the transferred bytes that miss L2, from 0 to 1.
        hbm: the cycles per byte that a transfer spends in HBM.
        l2: the cycles per byte that a transfer spends in L2.
        request: the smallest number of cycles per request that a transfer spends in HBM and L2 together.
    """

    far: float
    hbm: float
    l2: float
    request: float


Pace = Mapping[tuple[int, bool], Share]
"""The speed of transfers, by (position of the kernel argument, whether it is written)."""


@dataclass
class BlockTiming:
    """The times of the cores of one block, or of all blocks if they wait for each other, in cycles from the start.

    Attributes:
        cycles: the time at which the last core is done.
        cores: for each core the time at which it is done.
        busy: for each core and pipe, the cycles in which the pipe has work in flight.
        worked: for each core and pipe, the cycles in which the pipe can start no other work: ``busy`` without latency.
        spans: for each core and pipe, the start of the pipe's first work and the end of its last; (0, 0) for no work.
        stalled: for each core and pipe, the cycles by which GM transfers took longer because other cores use GM too.
        reading: cycles for which transfers that read from L2, or that read from or write to HBM, are in flight, summed over
            cores and pipes.
        writing: cycles for which transfers that write to L2 are in flight, summed over cores and pipes. A transfer that does
            both counts for ``reading`` and for ``writing`` by the share of its time.
        held: the cycles for which waits and barriers held their pipes, by core, number of the op's record, and
            ``PipeStep.place``.
        linked: cycles for which transfers to and from other cards are in flight, summed over cores and pipes.
        link_span: cycles for which at least one such transfer of any of the cores is in flight.
    """

    cycles: float
    cores: list[float]
    busy: list[list[float]]
    worked: list[list[float]]
    spans: list[list[tuple[float, float]]]
    stalled: list[list[float]]
    reading: float
    writing: float
    held: dict[tuple[int, int, int], float] = field(default_factory=dict)
    linked: float = 0.0
    link_span: float = 0.0


def _length_of_union(intervals: list[tuple[float, float]]) -> float:
    """Returns the length of the union of intervals, each given by its begin and end."""
    total = reached = 0.0
    for begin, end in sorted(intervals):
        if end > reached:
            total += end - max(begin, reached)
            reached = end
    return total


class PipeClock:
    """The state of one pipe of a core during the walk: the cycle in which it can start its next step (``free``), the cycle in
    which its work so far is done (``done``), and the cycles for which it was busy."""

    __slots__ = ("busy", "clock", "done", "end", "first", "free", "number", "stalled", "starts", "worked")

    def __init__(self, clock: CoreClock, number: int, queue: int) -> None:
        self.clock = clock
        self.number = number
        self.first = self.free = self.done = self.end = 0.0
        self.busy = self.worked = self.stalled = 0.0
        self.starts = deque([-inf] * queue, queue)  # start times of the steps that fill the pipe's queue


class CoreClock:
    """The state of one core during the walk: the cycle in which its scalar unit can issue the next step, and its pipes."""

    __slots__ = ("issue", "linked", "links", "number", "pipes", "reading", "writing")

    def __init__(self, number: int, queue: int) -> None:
        self.number = number
        self.issue = 0.0
        self.reading = self.writing = self.linked = 0.0
        self.links: list[tuple[float, float]] = []  # the begin and end of each transfer to or from another card
        self.pipes = [PipeClock(self, pipe, queue) for pipe in range(len(PIPES))]

    def drained(self) -> float:
        """Returns the cycle in which all work that the core has issued so far is done."""
        return max(self.issue, *(pipe.done for pipe in self.pipes), *(pipe.free for pipe in self.pipes))


StepMethod = Callable[[PipeClock, float, PipeStep, int, tuple[int, ...]], float]


class TimedWalk:
    """A walk over the ordered steps of a group of cores, which computes the time of each step.

    Each kind of step has a method. Its arguments are the pipe, the earliest cycle in which the step can start, the step, the
    step's position in the order, and for a wait the positions of the sets that it waits for. It returns the cycle in which the
    step starts.

    Args:
        order: the ordered steps.
        cores: the number of cores.
        chip: the chip, for the cycles of issue, events, barriers and flags.
        pace: the speed of transfers in GM.
    """

    def __init__(self, order: StepOrder, cores: int, chip: Chip, pace: Pace) -> None:
        self.order = order
        self.chip = chip
        self.sync = chip.sync
        self.in_flight = chip.traffic.in_flight
        self.pace = pace
        self.clocks = [CoreClock(core, chip.sync.queue) for core in range(cores)]
        self.fired = [0.0] * len(order.steps)
        self.held: dict[tuple[int, int, int], float] = defaultdict(float)

    def walk(self) -> None:
        """Computes the times of all steps, in order; must be called once."""
        if isinstance(self.order, PeriodicOrder) and self.order.periods:
            self._walk_part(0, len(self.order.steps), self.order.periods)
        else:
            self._walk_steps(enumerate(self.order.steps.rows()))

    def _walk_part(self, first: int, end: int, periods: Sequence[Period]) -> None:
        """Computes the times of a part of the order, with the periods in it."""
        columns = self.order.steps.columns
        ends = [first, *(period.end for period in periods)]
        starts = [*(period.first for period in periods), end]
        for place, stop, period in zip(ends, starts, [*periods, None], strict=True):
            rows = zip(*(column[place:stop] for column in columns), strict=True)
            self._walk_steps(zip(range(place, stop), rows, strict=True))
            if period is not None:
                self._walk_period(period)

    def _walk_period(self, period: Period) -> None:
        """Computes the times of a period, and of its further executions until each takes as long as the one before it. The
        others then take as long too, since times follow from each other by sums and maxima alone."""
        self._walk_part(period.first, period.end, period.inner)
        places = sorted({place for _, place in period.pending})
        before = PeriodState(self, places)
        for left in reversed(range(period.more)):
            fired = [self.fired[place] for _, place in period.pending]
            for (place, _), time in zip(period.pending, fired, strict=True):
                self.fired[place] = time
            self._walk_part(period.first, period.end, period.inner)
            after = PeriodState(self, places)
            cycles = after.cycles_since(before)
            if cycles is not None:
                after.skip(before, cycles, left)
                return
            before = after

    def _walk_steps(self, rows: Iterable[tuple[int, tuple[int, PipeStep, int, tuple[int, ...]]]]) -> None:
        """Computes the times of some steps, given with their positions in the order."""
        alu, issue_cycles = self.chip.scalar.alu, self.chip.scalar.issue
        clocks = self.clocks
        take = self.step_methods()
        for place, (core, step, _, partners) in rows:
            clock = clocks[core]
            pipes = clock.pipes
            spent = issue_cycles + alu * step.scalars
            issue = clock.issue = clock.issue + spent
            pipes[SCALAR].busy += spent
            pipes[SCALAR].worked += spent
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
        """Returns the method for each kind of step, at the index of the kind's number (``pipe_steps.RUN`` ...)."""
        return self.run, self.set_event, self.wait, self.drain, self.set_flag, self.wait, self.wait, self.release

    def times(self) -> BlockTiming:
        """Returns the times of the cores after :meth:`walk`."""
        ends = [clock.drained() for clock in self.clocks]
        return BlockTiming(
            max(ends, default=0.0), ends, [[pipe.busy for pipe in clock.pipes] for clock in self.clocks],
            [[pipe.worked for pipe in clock.pipes] for clock in self.clocks],
            [[(pipe.first, pipe.end) for pipe in clock.pipes] for clock in self.clocks],
            [[pipe.stalled for pipe in clock.pipes] for clock in self.clocks], sum(clock.reading for clock in self.clocks),
            sum(clock.writing for clock in self.clocks),
            dict(self.held), sum(clock.linked for clock in self.clocks),
            _length_of_union([link for clock in self.clocks for link in clock.links]))

    def run(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Times a step that executes work, such as a transfer or an instruction."""
        cost = step.cost
        busy, done, written = cost.busy, cost.done, 0.0
        if cost.shared:
            busy, done, late, written = shared_cycles(cost, self.pace)
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
            served = added if added < busy else busy
            pipe.worked += served
            if cost.shared:
                if cost.link is not None:
                    pipe.clock.linked += served
                    pipe.clock.links.append((start, start + busy))
                else:
                    served += self.in_flight * (added - served)
                    pipe.clock.reading += served * (1.0 - written)
                    pipe.clock.writing += served * written
        if finish > pipe.done:
            pipe.done = finish
        return start

    def set_event(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Times an instruction that sets an event, which takes effect once the earlier work of the pipe is done; returns the
        cycle at which the instruction starts.
        """
        self.fired[place] = (start if start > pipe.done else pipe.done) + self.sync.event
        return start

    def set_flag(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Times an instruction that sets a flag between cores, which takes effect once the earlier work of the pipe is done;
        returns the cycle at which the instruction starts.
        """
        self.fired[place] = (start if start > pipe.done else pipe.done) + self.sync.handoff
        pipe.free = start + self.sync.flag
        if pipe.number == SCALAR:
            pipe.clock.issue = pipe.free
        return start

    def wait(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Times an instruction that waits, which holds the pipe until all events or flags that it waits for are set; returns
        the cycle at which the wait is over. A wait for unit flags that were never set ends at once.
        """
        fired = self.fired
        if not partners:
            return start
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
        """Times a barrier of one pipe, which holds the pipe until its earlier work is done."""
        pipe.free = max(start, pipe.done) + (self.sync.vector_barrier if pipe.number == VECTOR else self.sync.barrier)
        self.held[pipe.clock.number, step.op, step.place] += pipe.free - start
        if pipe.number == SCALAR:
            pipe.clock.issue = pipe.free
        return start

    def drain_all(self, clock: CoreClock, step: PipeStep, place: int) -> None:
        """Times a barrier of all pipes, which holds the scalar unit until the earlier work of all pipes of the core is done."""
        before = clock.issue
        clock.issue = clock.drained() + self.sync.barrier
        self.held[clock.number, step.op, step.place] += clock.issue - before

    def release(self, pipe: PipeClock, start: float, step: PipeStep, place: int, partners: tuple[int, ...]) -> float:
        """Times the release of blocks of L0C, by which unit flags pass them on once the earlier work of the pipe is done."""
        self.fired[place] = start if start > pipe.done else pipe.done
        return start


class PeriodState:
    """The times on which a walk depends after an execution of a period, and the sums so far.

    Args:
        walk: the walk.
        pending: the positions of the sets that no wait has consumed.
    """

    def __init__(self, walk: TimedWalk, pending: Sequence[int]) -> None:
        self.walk, self.pending = walk, pending
        self.issues = [clock.issue for clock in walk.clocks]
        self.times = [*self.issues, *(walk.fired[place] for place in pending)]
        self.sums: list[float] = []
        self.links = sum(len(clock.links) for clock in walk.clocks)
        for clock in walk.clocks:
            self.sums += (clock.reading, clock.writing, clock.linked)
            for pipe in clock.pipes:
                self.times += (pipe.free, pipe.done, pipe.end, *pipe.starts)
                self.sums += (pipe.busy, pipe.worked, pipe.stalled)
        self.held = dict(walk.held)

    def cycles_since(self, before: PeriodState) -> float | None:
        """Returns by how many cycles all times are later than those of an earlier state; None if not all by as many.

        Times of pipes that the period does not use stay as they are. They matter no longer once all cores are past them.
        """
        cycles = max(now - then for now, then in zip(self.issues, before.issues, strict=True))
        if cycles <= 0.0 or self.links != before.links:
            return None
        passed, tolerance = min(before.issues), 1e-12 * max(self.times) + 1e-9
        for now, then in zip(self.times, before.times, strict=True):
            if abs(now - then - cycles) > tolerance and not (now == then and now <= passed):
                return None
        return cycles

    def skip(self, before: PeriodState, cycles: float, times: int) -> None:
        """Advances the walk by further executions of the period.

        Args:
            before: the state before the last execution.
            cycles: the duration of an execution.
            times: the number of executions.
        """
        walk, later = self.walk, cycles * times
        times_now = iter([now if now == then else now + later for now, then in zip(self.times, before.times, strict=True)])
        sums = iter([(now - then) * times for now, then in zip(self.sums, before.sums, strict=True)])
        for clock in walk.clocks:
            clock.issue = next(times_now)
        for place in self.pending:
            walk.fired[place] = next(times_now)
        for clock in walk.clocks:
            clock.reading += next(sums)
            clock.writing += next(sums)
            clock.linked += next(sums)
            for pipe in clock.pipes:
                pipe.free, pipe.done, pipe.end = next(times_now), next(times_now), next(times_now)
                pipe.starts = deque([next(times_now) for _ in pipe.starts], pipe.starts.maxlen)
                pipe.busy += next(sums)
                pipe.worked += next(sums)
                pipe.stalled += next(sums)
        for key, cycles_held in self.held.items():
            walk.held[key] += (cycles_held - before.held.get(key, 0.0)) * times


def simulate_times(order: StepOrder, cores: int, chip: Chip, pace: Pace) -> BlockTiming:
    """Returns the times of a group of cores that run concurrently.

    Args:
        order: the ordered steps of the cores.
        cores: the number of cores.
        chip: the chip, for the cycles of issue, events, barriers and flags.
        pace: the speed of transfers in GM.
    """
    walk = TimedWalk(order, cores, chip, pace)
    walk.walk()
    return walk.times()


def shared_cycles(cost: Cost, pace: Pace) -> tuple[float, float, float, float]:
    """Returns the cycles of a step that moves data in GM, or to or from another card, while other cores do so too.

    Args:
        cost: the cycles of the step if no other core uses GM or the links.
        pace: the speed of transfers in GM.

    Returns:
        the cycles until the pipe can start its next step; the cycles until the result is available; the part of the first
        number that the other cores cause; the share, from 0 to 1, of the transfer's GM time in which it writes to L2.
    """
    far = reading = writing = 0.0
    for part in cost.gm:
        share = pace.get((part.buffer, part.written))
        if share is not None:
            hbm = part.far * share.hbm
            l2 = max(part.near * share.l2, part.requests * share.request - hbm)
            reading += hbm
            if part.written:
                writing += l2
            else:
                reading += l2
            far = max(far, share.far)
    if cost.link is not None and (share := pace.get((LINK, cost.link.written))) is not None:
        reading += cost.link.nbytes * share.l2
    shared = reading + writing
    written = writing / shared if shared else 0.0
    busy, done = cost.busy + far * cost.more_busy, cost.done + far * cost.more_done
    if shared <= busy:
        return busy, done, 0.0, written
    late = shared - busy
    done = max(done, min(cost.latency + shared, done + late))  # continuous where sharing begins to matter
    return shared, done, late, written
