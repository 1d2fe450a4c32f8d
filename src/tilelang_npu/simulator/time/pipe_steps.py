"""The steps into which the timing model divides ops. A step is one action of an op on one pipe; most ops have one step, and the
matmul macro has many."""

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
    Footprint,
    Mmad,
    Multiply,
    Nothing,
    OpRecord,
    Scalars,
    Transfer,
    footprint,
    number_of,
    value,
)
from tilelang_npu.simulator.time.cost import Cost, CostModel
from tilelang_npu.target.chip_data import PIPES, Pipe

RUN, SET, WAIT, BARRIER, CROSS_SET, CROSS_WAIT, JOIN, RELEASE = range(8)
"""The kinds of steps: ``RUN`` executes work on a pipe; ``SET`` sets an event; ``WAIT`` waits for an event; ``BARRIER`` waits
until the earlier work of one pipe or of all pipes is done; ``CROSS_SET`` sets a flag between cores; ``CROSS_WAIT`` waits for a
flag between cores. ``JOIN`` and ``RELEASE`` are the unit flags of blocks of L0C: ``JOIN`` holds pipe M or FIX until the work of
the other pipe before its last ``RELEASE`` of one of the blocks is done."""
PIPE: dict[Pipe, int] = {name: number for number, name in enumerate(PIPES)}
"""The numbers of the pipes of a core."""
UNIT = 512
"""The number of bytes of L0C that have a unit flag of their own (docs/performance.md, unit flags)."""
ALL = -1
NO_PLACE = -1
_FREE_OF_COST = Cost(0.0, 0.0, 0)


class PipeStep(NamedTuple):
    """One action of an op on one pipe. Pipes are given by their numbers, the positions in ``PIPES``.

    Attributes:
        kind: the kind of step, such as ``RUN``.
        pipe: the pipe that executes the step: for a set the pipe after whose earlier work the set takes effect, for a wait the
            pipe that waits; ``ALL`` for a barrier of all pipes.
        other: for a set of an event the waiting pipe; for a wait for an event the setting pipe; for ``JOIN`` the pipe that
            releases the blocks.
        number: the number of the event or flag; in a step order, for ``RELEASE`` the number of earlier releases of the pipe,
            and for ``JOIN`` the number of the release that it waits for, or -1 for none.
        cost: for ``RUN``, the cycles.
        accesses: for ``RUN``, the positions in the op's record of the accesses that the step makes.
        group: for ``CROSS_SET``, the name of the group of cores that receive the flag.
        op: the number of the op's record.
        place: for a wait or set of the matmul macro whose event the kernel passes in ``sync_related_args``, the position of the
            event there; otherwise ``NO_PLACE``.
        blocks: for ``JOIN`` and ``RELEASE``, the blocks of L0C, as a bit mask: bit i is the block of ``UNIT`` bytes from byte
            ``i * UNIT`` on.
        flag: for ``JOIN`` and ``RELEASE``, how the op uses unit flags (``UnitFlagUse``).
        scalars: the number of scalar instructions that the scalar unit executes before it issues the step.
    """

    kind: int
    pipe: int
    other: int = -1
    number: int = 0
    cost: Cost = _FREE_OF_COST
    accesses: tuple[int, ...] = ()
    group: str = ""
    place: int = NO_PLACE
    blocks: int = 0
    flag: str = ""
    op: int = -1
    scalars: int = 0

    @property
    def event(self) -> tuple[int, int, int]:
        """For ``SET`` and ``WAIT``: the pipe that sets the event, the pipe that waits for it, and its number."""
        return (self.pipe, self.other, self.number) if self.kind == SET else (self.other, self.pipe, self.number)


INTERNAL = 100
"""The first of the event numbers that the matmul macro uses internally; events of the kernel have smaller numbers."""
_READY = INTERNAL
"""The number of the event by which MTE1 says that it has filled the first half of L0; the next number is for the second
half."""
_FREE = 110
"""The number of the event by which M says that it no longer needs the first half of L0, if the kernel passes no events for
this; the next number is for the second half."""
_ENTRY = 120
"""The number of the event by which M says that it has finished the work before the macro."""


class Expansion:
    """The steps of the executed ops (events) of one function of a kernel; equal events are expanded only once.

    Args:
        records: the records of the function's ops.
        costs: computes the cycles of steps.
    """

    def __init__(self, records: Sequence[OpRecord], costs: CostModel) -> None:
        self.records = records
        self._costs = costs
        self._known: dict[Event, tuple[PipeStep, ...]] = {}

    def of(self, event: Event) -> tuple[PipeStep, ...]:
        """Returns the steps of an executed op, in the order in which the core issues them."""
        found = self._known.get(event)
        if found is None:
            record = self.records[number_of(event)]
            scalars = record.scalars
            if isinstance(record.work, Scalars):
                scalars *= value(record.work.times, event)
            found = self._known[event] = tuple(
                PipeStep(*step[:-2], op=record.number, scalars=0 if place else scalars)
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
        if isinstance(work, Transfer | Multiply) and work.unit_flag:
            use: str = work.unit_flag
            if isinstance(work, Multiply) and use == "either":
                use = "pass" if value(work.flag, event) == 0b11 else "keep"
            return _with_unit_flags([run], record, event, use)
        return [run]

    def _macro(self, record: OpRecord, work: Mmad, event: Event) -> list[PipeStep]:
        """Returns the steps of the matmul macro. It divides K into chunks. For each chunk, MTE1 loads the operands from L1 into
        one half of L0A and L0B, and M multiplies them; successive chunks alternate between the two halves."""
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
        scales = (2, 3) if work.scaled else ()  # the accesses of an MX product are A, B, their scales, and C
        steps: list[PipeStep] = []
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
            steps.append(_run(load, self._costs.load_a(work, m, depth), 0, *scales[:1]))
            if number == last and free_a >= 0:
                steps.append(PipeStep(SET, load, move, free_a, place=2))
            if number == 0 and wait_b >= 0:
                steps.append(PipeStep(WAIT, load, move, wait_b, place=1))
            steps.append(_run(load, self._costs.load_b(work, depth, n), 1, *scales[1:]))
            if number == last and free_b >= 0:
                steps.append(PipeStep(SET, load, move, free_b, place=3))
            if number == 0 and work.bias:
                steps.append(_run(load, self._costs.load_bias(n), 3))
            steps += [PipeStep(SET, load, mult, _READY + half), PipeStep(WAIT, mult, load, _READY + half),
                      _run(mult, self._costs.multiply(work, m, depth, n), 2 + len(scales))]
            if guarded:
                steps.append(PipeStep(SET, mult, load, halves[half]))
            elif number + 2 <= last:
                steps.append(PipeStep(SET, mult, load, _FREE + half))
        return _with_unit_flags(steps, record, event, work.unit_flag) if work.unit_flag else steps


def _with_unit_flags(steps: list[PipeStep], record: OpRecord, event: Event, use: str) -> list[PipeStep]:
    """Adds to the steps of an op on M or FIX the wait for its blocks of L0C and, unless it keeps them, their release.

    The wait is before the first multiplication or movement, so that loads to L0A and L0B need not wait.
    """
    pipe, other = (PIPE["FIX"], PIPE["M"]) if record.pipe == "FIX" else (PIPE["M"], PIPE["FIX"])
    blocks = 0
    for access in record.accesses:
        if access.memory == "cc":
            blocks |= _blocks(footprint(access, event))
    join = PipeStep(JOIN, pipe, other, blocks=blocks, flag=use)
    first = next(place for place, step in enumerate(steps) if step.kind == RUN and step.pipe == pipe)
    release = [] if use == "keep" else [join._replace(kind=RELEASE)]
    return [*steps[:first], join, *steps[first:], *release]


def _blocks(where: Footprint) -> int:
    """Returns the bit mask of the blocks of ``UNIT`` bytes that a footprint overlaps."""
    if where.empty:
        return 0
    where = where.simplified()
    starts = [where.offset]
    for size, stride in zip(where.sizes, where.strides, strict=True):
        starts = [start + index * stride for start in starts for index in range(size)]
    mask = 0
    for start in starts:
        low, high = start // UNIT, -(-(start + where.element) // UNIT)
        mask |= ((1 << (high - low)) - 1) << low
    return mask


Change = Callable[[OpRecord, PipeStep], PipeStep | None]
"""A function that returns a changed copy of a step of an op, the step itself, or None to remove the step."""


class ChangedExpansion(Expansion):
    """An ``Expansion`` whose steps are changed or removed, to time a launch under other conditions.

    Args:
        change: the function that changes or removes each step.
        records: the records of the function's ops.
        costs: computes the cycles of steps.
    """

    def __init__(self, change: Change, records: Sequence[OpRecord], costs: CostModel) -> None:
        super().__init__(records, costs)
        self._change = change
        self._changed: dict[Event, tuple[PipeStep, ...]] = {}

    def of(self, event: Event) -> tuple[PipeStep, ...]:
        """Returns the changed steps of an executed op."""
        found = self._changed.get(event)
        if found is None:
            record = self.records[number_of(event)]
            steps = (self._change(record, step) for step in super().of(event))
            found = self._changed[event] = tuple(step for step in steps if step is not None)
        return found


def scaled_work(step: PipeStep, factor: float) -> PipeStep:
    """Returns a copy of a step whose ``busy`` and ``done`` cycles are multiplied by ``factor``."""
    return step._replace(cost=replace(step.cost, busy=step.cost.busy * factor, done=step.cost.done * factor))


def _run(pipe: int, cost: Cost, *accesses: int) -> PipeStep:
    return PipeStep(RUN, pipe, cost=cost, accesses=accesses)
