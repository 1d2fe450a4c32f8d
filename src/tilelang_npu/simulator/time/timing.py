"""Cycles of a block: one walk over the order of its steps.

The scalar unit issues steps in program order, as long as the queue in front of the pipe has room. A pipe starts its steps
in order; it takes the next one while the results of the last are still on their way. A set fires when the earlier work of
its pipe is done and holds nobody; a wait holds its pipe; a barrier drains it.

GM is shared: with other cores at work, a transfer takes at least its bytes times ``pace``, the cycles per byte that are
left to this core (``traffic``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tilelang_npu.simulator.machine.cores import CoreId
from tilelang_npu.simulator.machine.events import OpRecord, number_of
from tilelang_npu.simulator.time.cost import Cost
from tilelang_npu.simulator.time.schedule import Order
from tilelang_npu.simulator.time.steps import (
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
)
from tilelang_npu.target import Chip

SCALAR = 0
Pace = Mapping[tuple[int, bool], float]
"""Cycles per byte of GM by (kernel argument, whether it is written)."""


class Slice(NamedTuple):
    """A step on a pipe, for the trace: cycles from the start of the block."""

    core: int
    pipe: int
    start: float
    end: float
    event: int
    nbytes: int
    reason: str


@dataclass
class BlockTiming:
    """The times of the cores of one block (or of all blocks that wait for each other).

    Attributes:
        cycles: until the last core is done.
        cores: the same of each core.
        busy: per core the cycles that each pipe has work in flight.
        stalled: cycles that GM transfers took longer than on an idle chip, per core and pipe.
        moving: cycles that GM transfers are in flight, over all cores and pipes.
        held: cycles that waits and barriers held their pipes, by core and the number of the op.
        slices: for the trace, where asked for.
    """

    cycles: float
    cores: list[float]
    busy: list[list[float]]
    stalled: list[list[float]]
    moving: float
    held: dict[tuple[int, int], float] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)


class _Clock:
    """Times of one core."""

    __slots__ = ("busy", "done", "end", "free", "issue", "last", "moving", "reason", "stalled", "starts")

    def __init__(self) -> None:
        count = len(PIPES)
        self.issue = 0.0
        self.moving = 0.0
        self.free = [0.0] * count
        self.done = [0.0] * count
        self.busy = [0.0] * count
        self.stalled = [0.0] * count
        self.starts: list[list[float]] = [[] for _ in range(count)]
        self.end = [0.0] * count
        self.last = [-1] * count
        self.reason = [""] * count


def simulate_times(order: Order, cores: Sequence[CoreId], records: Sequence[Sequence[OpRecord]],
                   streams: Sequence[Sequence[object]], chip: Chip, pace: Pace, *, trace: bool = False) -> BlockTiming:
    """The times of a group of cores.

    Args:
        order: their steps.
        cores: the cores.
        records: per core what is known of its ops.
        streams: per core its events.
        chip: gives issue, event, barrier and hand-off cycles.
        pace: how fast GM is.
        trace: keep slices.
    """
    scalar, sync = chip.scalar, chip.sync
    ahead, alu, issue_cycles = sync.queue, scalar.alu, scalar.issue
    clocks = [_Clock() for _ in cores]
    fired: dict[int, float] = {}
    slices: list[Slice] = []
    held: dict[tuple[int, int], float] = defaultdict(float)
    scalars = [[record.scalars for record in one] for one in records]
    for place, (core, step, number, first, partners) in enumerate(order.steps):
        clock = clocks[core]
        kind, pipe, other, _, cost, _ = step
        spent = issue_cycles
        if first:
            event = streams[core][number]
            spent += alu * scalars[core][event if isinstance(event, int) else event[0]]  # type: ignore[index]  # (number, times)
        clock.issue += spent
        clock.busy[SCALAR] += spent
        if pipe == ALL:
            before = clock.issue
            clock.issue = max(before, *clock.done, *clock.free) + sync.barrier
            held[core, number_of(streams[core][number])] += clock.issue - before  # type: ignore[arg-type]  # a stream's event
            continue
        starts = clock.starts[pipe]
        if len(starts) >= ahead and starts[-ahead] > clock.issue:
            clock.issue = starts[-ahead]
        ready = clock.issue
        free = clock.free[pipe]
        start = ready if ready > free else free
        if kind == RUN:
            busy, done = cost.busy, cost.done
            if cost.gm:
                shared = _shared(cost, pace)
                if shared > busy:
                    clock.stalled[pipe] += shared - busy
                    busy = shared
                    done = max(done, shared)
            if pipe == SCALAR:
                start = max(start, clock.issue)
                clock.issue = start + busy
            clock.free[pipe] = start + busy
            finish = start + done
            end = clock.end[pipe]
            if finish > end:
                added = finish - max(start, end)
                clock.busy[pipe] += added
                clock.end[pipe] = finish
                if cost.gm:
                    clock.moving += added
            if finish > clock.done[pipe]:
                clock.done[pipe] = finish
            if trace:
                last = clock.last[pipe]
                if last >= 0 and slices[last].end > start:
                    slices[last] = slices[last]._replace(end=start)
                clock.last[pipe] = len(slices)
                slices.append(Slice(core, pipe, start, finish, number, cost.nbytes,
                                    clock.reason[pipe] if free > ready else ""))
                clock.reason[pipe] = ""
        elif kind == SET:
            drained = clock.done[pipe]
            fired[place] = (start if start > drained else drained) + sync.event
        elif kind == CROSS_SET:
            drained = clock.done[pipe]
            fired[place] = (start if start > drained else drained) + sync.handoff
        elif kind in (WAIT, CROSS_WAIT):
            released = max(fired[partner] for partner in partners)
            if trace and released > start:
                clock.reason[pipe] = _reason(order, records, streams, place, partners, kind)
            if released > start:
                held[core, number_of(streams[core][number])] += released - start  # type: ignore[arg-type]  # as above
                start = released
            clock.free[pipe] = start
            if start > clock.done[pipe]:
                clock.done[pipe] = start
            if pipe == SCALAR:
                clock.issue = start
        elif kind == BARRIER:
            clock.free[pipe] = max(start, clock.done[pipe]) + sync.barrier
            held[core, number_of(streams[core][number])] += clock.free[pipe] - start  # type: ignore[arg-type]  # as above
            if trace:
                clock.reason[pipe] = f"pipe_barrier[{PIPES[pipe]}]"
            if pipe == SCALAR:
                clock.issue = clock.free[pipe]
        elif kind == JOIN:
            clock.free[pipe] = max(start, clock.done[other])
        starts.append(start)
    ends = [max(clock.issue, *clock.done, *clock.free) for clock in clocks]
    return BlockTiming(max(ends, default=0.0), ends, [clock.busy for clock in clocks], [clock.stalled for clock in clocks],
                       sum(clock.moving for clock in clocks), dict(held), slices)


def _shared(cost: Cost, pace: Pace) -> float:
    """Cycles that the GM bytes of a step take beside the other cores."""
    total = 0.0
    for buffer, written, nbytes in cost.gm:
        total += nbytes * pace.get((buffer, written), 0.0)
    return total


def _reason(order: Order, records: Sequence[Sequence[OpRecord]], streams: Sequence[Sequence[object]], place: int,
            partners: Sequence[int], kind: int) -> str:
    """What a wait waited for, in words."""
    setter = order.steps[partners[-1]]
    event = streams[setter.core][setter.number]
    record = records[setter.core][number_of(event)]  # type: ignore[arg-type]  # a stream's event
    line = f" at line {record.location.line}" if record.location is not None else ""
    if kind == CROSS_WAIT:
        return f"flag {order.steps[place].step[3]} set{line}"
    if setter.step[3] >= INTERNAL:
        return "L0A and L0B" if setter.step[1] == PIPES.index("MTE1") else "a free half of L0A and L0B"
    return f"event {setter.step[3]} of {PIPES[setter.step[1]]} set{line}"
