"""The breakdown of time by reason, for one block and for a launch: along the critical path, and for each pipe."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from tilelang_npu.simulator.result.profile.time_parts import Reason, line_of
from tilelang_npu.simulator.time.cost import Cost, CostModel
from tilelang_npu.simulator.time.critical_path import AFTER, DONE, FIRED, FREE, ISSUED, START, CoreGroupTimes, Segment
from tilelang_npu.simulator.time.pipe_steps import ALL, BARRIER, CROSS_SET, RUN, SET, Expansion
from tilelang_npu.simulator.time.timing import shared_cycles
from tilelang_npu.target import Chip
from tilelang_npu.target.chip_data import PIPES, CoreKind, Pipe

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Group, Launch
    from tilelang_npu.simulator.time.step_order import Ordered

SCALAR: Pipe = "S"


class Stretch(NamedTuple):
    """A part of the critical path of a block: its start and end in cycles from the start of the block, and its reason."""

    start: float
    end: float
    reason: Reason


Row = tuple[CoreKind, Pipe]
"""A kind of core and a pipe."""


@dataclass
class BlockTimes:
    """The time of a block by reason. If all blocks of a launch wait for each other, they count as one block here.

    Attributes:
        group: the group of blocks with equal times that the block represents.
        traced: the times of the block's steps.
        path: the critical path of the block, without gaps.
        pipes: for each kind of core and pipe the cycles of each reason, summed over the cores of the block.
        work: the cycles of work by (kind of core and pipe, reason), summed over the cores of the block. Work of a pipe that
            overlaps in time counts more than once.
    """

    group: Group
    traced: CoreGroupTimes
    path: list[Stretch] = field(default_factory=list)
    pipes: dict[Row, dict[Reason, float]] = field(default_factory=dict)
    work: dict[tuple[Row, Reason], float] = field(default_factory=lambda: defaultdict(float))


def without_rows(chip: Chip) -> Chip:
    """Returns a copy of the chip on which short rows take no longer than their bytes at the full rate."""
    paths = {name: replace(path, move=path.move and replace(path.move, row=0.0), near=path.near and replace(path.near, row=0.0))
             for name, path in chip.paths.items()}
    return replace(chip, paths=paths)


class _Reasons:
    """Finds the reasons for the times of a block's steps.

    Args:
        launch: the launch.
        traced: the times of the block's steps.
    """

    def __init__(self, launch: Launch, traced: CoreGroupTimes) -> None:
        self.traced, self.walked = traced, traced.walked
        rowless = CostModel(without_rows(launch.chip))
        made: dict[int, Expansion] = {}
        self.rowless = [made.setdefault(id(known), Expansion(known, rowless)) for known in traced.together.records]
        self._known: dict[tuple[int, int, int, str], Reason] = {}
        self._running: dict[tuple[int, int], list[tuple[Reason, float]]] = {}

    def of(self, ordered: Ordered, kind: str) -> Reason:
        """Returns a reason of the given kind that names the core, pipe, op and source line of a step."""
        key = ordered.core, ordered.step.op, ordered.step.pipe, kind
        found = self._known.get(key)
        if found is None:
            record = self.traced.record(ordered)
            core = self.traced.together.cores[ordered.core].kind
            pipe = "" if ordered.step.pipe == ALL else PIPES[ordered.step.pipe]
            found = self._known[key] = Reason(kind, core, pipe, record.mnemonic, line_of(record.location))
        return found

    def running(self, ordered: Ordered) -> list[tuple[Reason, float]]:
        """Returns the parts of the time of an executed step, as pairs of a reason and cycles.

        All parts but the last add up to the cycles until the pipe can start its next step. The last part is the latency from
        then until the step's result is available.
        """
        key = ordered.core, id(ordered.step)  # equal iterations share one step
        found = self._running.get(key)
        if found is None:
            cost = ordered.step.cost
            busy, done, *_ = shared_cycles(cost, self.walked.pace)
            if cost.gm:
                parts = list(self._of_transfer(ordered, cost, busy))
            elif cost.link is not None:
                parts = [("link", busy)]
            else:
                scalar = PIPES[ordered.step.pipe] == SCALAR
                parts = [("scalar" if scalar else "compute" if self._computes(ordered) else "transfer", busy)]
            parts.append(("latency", done - busy))
            found = self._running[key] = [(self.of(ordered, kind), cycles) for kind, cycles in parts]
        return found

    @staticmethod
    def _computes(ordered: Ordered) -> bool:
        return PIPES[ordered.step.pipe] in ("V", "M")

    def _of_transfer(self, ordered: Ordered, cost: Cost, busy: float) -> Iterator[tuple[str, float]]:
        pace = self.walked.pace
        own = self._alone(cost)
        event = self.traced.together.streams[ordered.core][ordered.number]
        easy = next((step.cost for step in self.rowless[ordered.core].of(event) if step.cost.gm), cost)
        rows = max(0.0, own - self._alone(easy))
        hbm = sum(part.far * pace[part.buffer, part.written].hbm for part in cost.gm if (part.buffer, part.written) in pace)
        l2 = sum(part.near * pace[part.buffer, part.written].l2 for part in cost.gm if (part.buffer, part.written) in pace)
        yield "HBM" if hbm >= l2 else "L2", busy - own
        yield "short rows", rows
        yield "transfer", own - rows

    def _alone(self, cost: Cost) -> float:
        """Returns the cycles for which a transfer occupies its pipe if no other core uses GM."""
        shares = [share.far for part in cost.gm if (share := self.walked.pace.get((part.buffer, part.written))) is not None]
        return cost.busy + max(shares, default=0.0) * cost.more_busy

    def waited(self, ordered: Ordered) -> Reason:
        """Returns the reason of a wait: the work whose end the awaited set signals."""
        setter = max(ordered.partners, key=lambda place: self.walked.fired[place])
        work = self.walked.work_before(setter)
        if work < 0:
            return replace(self.of(self.walked.order.steps[setter], "wait"), pipe=SCALAR)
        return self.of(self.walked.order.steps[work], "wait")


def block_times(launch: Launch, group: Group) -> BlockTimes:
    """Returns the time by reason of a block of a group."""
    reasons = _Reasons(launch, launch.traced(group))
    found = BlockTimes(group, reasons.traced, _block_path(reasons))
    _pipes(reasons, found)
    return found


def _block_path(reasons: _Reasons) -> list[Stretch]:
    """Returns the critical path of a block, without gaps."""
    return [stretch for segment in reasons.walked.critical_path() for stretch in _stretches(reasons, segment)]


def _stretches(reasons: _Reasons, segment: Segment) -> Iterator[Stretch]:
    """Yields the parts of a segment of the critical path, one for each reason."""
    place, which = segment.moment
    ordered = reasons.walked.order.steps[place]
    step = ordered.step
    if which in (FREE, DONE) and step.kind == RUN:
        start = segment.start
        parts = [(reason, cycles) for reason, cycles in reasons.running(ordered)[:-1 if which == FREE else None] if cycles > 0]
        for number, (reason, cycles) in enumerate(parts, 1):
            end = segment.end if number == len(parts) else min(segment.end, start + cycles)
            if end > start:
                yield Stretch(start, end, reason)
            start = end
        return
    kind = "issue"
    if which == FIRED:
        kind = "flag" if step.kind == CROSS_SET else "event"
    elif which in (FREE, AFTER) and step.kind == CROSS_SET:
        kind = "flag"
    elif which in (FREE, AFTER) and (step.pipe == ALL or step.kind == BARRIER):
        kind = "barrier"
    reason = reasons.of(ordered, kind)
    if kind in ("flag", "event"):
        work = reasons.walked.work_before(place)
        reason = reason if work < 0 else reasons.of(reasons.walked.order.steps[work], kind)
    yield Stretch(segment.start, segment.end, reason)


class _Lane:
    """The time of one pipe of one core, divided by reason; an object that is filled from the start of the block to its end.

    Attributes:
        until: the cycle up to which the reasons are known.
        parts: the cycles of each reason so far.
    """

    def __init__(self) -> None:
        self.until = 0.0
        self.parts: dict[Reason, float] = defaultdict(float)

    def up_to(self, time: float, reason: Reason) -> float:
        """Adds a reason for the time from ``until`` to ``time``, and returns the length of that time in cycles."""
        added = max(0.0, time - self.until)
        if added:
            self.parts[reason] += added
            self.until = time
        return added


def _pipes(reasons: _Reasons, found: BlockTimes) -> None:
    """Fills in ``pipes`` and ``work`` of a block: the reasons of the time of each pipe of its cores."""
    walked, cores = reasons.walked, reasons.traced.together.cores
    lanes: dict[tuple[int, int], _Lane] = defaultdict(_Lane)
    used = {(ordered.core, ordered.step.pipe) for ordered in walked.order.steps if ordered.step.kind == RUN}
    issuing: list[float] = [0.0] * len(cores)
    for ordered, point in zip(walked.order.steps, walked.points, strict=True):
        core, step, times = ordered.core, ordered.step, point.times
        scalar = lanes[core, 0]
        before, issuing[core] = issuing[core], times[AFTER]
        if times[ISSUED] > before:
            spent = min(times[ISSUED] - before, walked.chip.scalar.issue + walked.chip.scalar.alu * step.scalars)
            scalar.up_to(times[ISSUED] - spent, replace(reasons.of(ordered, "wait"), op="", place=None))  # its queue is full
            reason = reasons.of(ordered, "issue")
            scalar.up_to(times[ISSUED], reason)
            found.work[(cores[core].kind, SCALAR), reason] += spent
        if step.pipe == ALL:
            for pipe in (pipe for where, pipe in used if where == core):
                lane = lanes[core, pipe]
                lane.up_to(times[ISSUED], reasons.of(ordered, "not issued"))
                lane.up_to(times[AFTER], reasons.of(ordered, "barrier"))
            scalar.up_to(times[AFTER], reasons.of(ordered, "barrier"))
            continue
        lane = lanes[core, step.pipe]
        if step.kind == RUN:
            lane.up_to(times[START], reasons.of(ordered, "not issued"))
            running = reasons.running(ordered)
            left = max(0.0, times[DONE] - lane.until)
            for reason, cycles in running:
                taken = min(max(cycles, 0.0), left)
                lane.up_to(lane.until + taken, reason)
                left -= taken
            lane.up_to(times[DONE], running[-1][0])
            row = cores[core].kind, PIPES[step.pipe]
            for reason, cycles in running[:-1]:
                found.work[row, reason] += cycles
        elif step.kind == SET:
            continue
        elif step.kind == CROSS_SET:
            lane.up_to(times[START], reasons.of(ordered, "not issued"))
            lane.up_to(times[FREE], reasons.of(ordered, "flag"))
        else:
            lane.up_to(point.due, reasons.of(ordered, "not issued"))
            waiting = reasons.waited(ordered) if ordered.partners else reasons.of(ordered, "barrier")
            lane.up_to(times[START] if ordered.partners else times[FREE], waiting)
    end = walked.timing.cycles
    for (core, pipe), lane in lanes.items():
        if (core, pipe) in used or pipe == 0:
            lane.up_to(end, Reason("finished"))
            parts = found.pipes.setdefault((cores[core].kind, PIPES[pipe]), {})
            for reason, cycles in lane.parts.items():
                parts[reason] = parts.get(reason, 0.0) + cycles


@dataclass
class LaunchBreakdown:
    """The time of a launch by reason, in microseconds that are not rounded.

    Attributes:
        blocks: the times of one block of each group of blocks with equal times.
        path: the time of each reason on the critical path of the core that ends last.
        pipes: for each kind of core and pipe the time of each reason, averaged over the cores in use.
        work: the time of work by (kind of core and pipe, reason), averaged over the cores in use.
    """

    blocks: list[BlockTimes]
    path: dict[Reason, float]
    pipes: dict[Row, dict[Reason, float]]
    work: dict[tuple[Row, Reason], float]


def launch_breakdown(launch: Launch) -> LaunchBreakdown:
    """Returns the time of a launch by reason."""
    blocks = {id(group): block_times(launch, group) for group in launch.groups}
    paths = {key: one.path for key, one in blocks.items()}
    us = launch.chip.microseconds
    per_kind = Counter(launch.recorded.program.functions[index].core for index, _ in launch.recorded.program.lanes)
    taking_part = min(launch.cores, launch.blocks)
    ends = launch.core_cycles
    pipes: dict[Row, dict[Reason, float]] = defaultdict(lambda: defaultdict(float))
    work: dict[tuple[Row, Reason], float] = defaultdict(float)
    for one in blocks.values():
        for row, parts in one.pipes.items():
            for reason, cycles in parts.items():
                pipes[row][reason] += us(cycles) * one.group.count / (taking_part * per_kind[row[0]])
        for (row, reason), cycles in one.work.items():
            work[row, reason] += us(cycles) * one.group.count / (taking_part * per_kind[row[0]])
    idle = sum(launch.cycles - end for end in ends) / taking_part
    gaps = us(sum(ends) - sum(group.timing.cycles for group in launch.group_of_block)) / taking_part
    for row_parts in pipes.values():
        for reason, time in _around(launch, us(idle), gaps):
            row_parts[reason] += time
        left = launch.time_us - sum(row_parts.values())
        if left > 0.0:  # blocks in which the pipe has no work
            row_parts[Reason("finished")] += left
    return LaunchBreakdown(list(blocks.values()), _path(launch, paths, _last_core(launch)),
                           {row: dict(parts) for row, parts in sorted(pipes.items())}, work)


def _around(launch: Launch, idle: float, gaps: float) -> Iterator[tuple[Reason, float]]:
    yield Reason("launch"), launch.launch_us
    yield Reason("next block"), gaps
    yield Reason("idle"), idle


def critical_path_of(launch: Launch) -> dict[Reason, float]:
    """Returns the time of each reason, in microseconds, on the critical path of the core that ends last: the path of
    :func:`launch_breakdown`, without the times of the pipes."""
    core = _last_core(launch)
    own = {id(group): group for group in launch.group_of_block[core::launch.cores]}
    return _path(launch, {key: _block_path(_Reasons(launch, launch.traced(group))) for key, group in own.items()}, core)


def _last_core(launch: Launch) -> int:
    """Returns the number of the core that ends last."""
    ends = launch.core_cycles
    return ends.index(max(ends))


def _path(launch: Launch, blocks: dict[int, list[Stretch]], core: int) -> dict[Reason, float]:
    """Returns the time of each reason, in microseconds, on the critical path of a core: the sum over the blocks that the core
    runs one after the other.

    Args:
        launch: the launch.
        blocks: the critical path of a block of each group that the core runs, by the id of the group.
        core: the number of the core.
    """
    path: dict[Reason, float] = defaultdict(float)
    path[Reason("launch")] = launch.launch_us
    own = Counter(id(group) for place, group in enumerate(launch.group_of_block) if place % launch.cores == core)
    if launch.recorded.program.global_sync:
        own = Counter(dict.fromkeys(own, 1))  # one group contains all blocks, which run concurrently
    for key, count in own.items():
        for start, end, reason in blocks[key]:
            path[reason] += launch.chip.microseconds(end - start) * count
    path[Reason("next block")] = max(0.0, launch.time_us - sum(path.values()))
    return dict(path)
