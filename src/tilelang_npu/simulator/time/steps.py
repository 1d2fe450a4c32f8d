"""What the pipes see of an op: most are one step, the matmul macro is many.

A step is a tuple ``(kind, pipe, other, number, cost, accesses)``:

=========  =====================  ==================  =====================================  ===========================
kind       pipe                   other               number                                 cost, accesses
=========  =====================  ==================  =====================================  ===========================
RUN        executes               -                   -                                      its cost; access indices
SET        behind whose work      pipe it is for      event                                  -
WAIT       is held                pipe it is from     event                                  -
BARRIER    is drained (-1: all)   -                   -                                      -
CROSS_SET  behind whose work      group (a string)    flag                                   -
CROSS_WAIT is held                -                   flag                                   -
JOIN       is held                until this drained  -                                      -
=========  =====================  ==================  =====================================  ===========================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilelang_npu.simulator.machine.events import Event, OpRecord, number_of, value
from tilelang_npu.simulator.machine.work import Barrier, CrossSet, CrossWait, EventSet, EventWait, Mmad, Nothing, Transfer
from tilelang_npu.simulator.time.cost import CostModel

RUN, SET, WAIT, BARRIER, CROSS_SET, CROSS_WAIT, JOIN = range(7)
PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
"""Pipes of a core, in the order of their numbers."""
PIPE = {name: number for number, name in enumerate(PIPES)}
ALL = -1
Step = tuple[int, int, Any, int, Any, tuple[int, ...]]

INTERNAL = 100
"""Events from here on are the matmul macro's own."""
_READY = INTERNAL
"""MTE1 has filled a half of L0."""
_FREE = 110
"""M has emptied a half of L0, where the macro guards the halves itself."""
_ENTRY = 120
"""M has finished the work before the macro."""


class Expansion:
    """The steps of the events of one function, made once per distinct event."""

    def __init__(self, records: Sequence[OpRecord], costs: CostModel) -> None:
        self.records = records
        self._costs = costs
        self._known: dict[Event, tuple[Step, ...]] = {}

    def of(self, event: Event) -> tuple[Step, ...]:
        """The steps of an event."""
        found = self._known.get(event)
        if found is None:
            found = self._known[event] = tuple(self._expand(self.records[number_of(event)], event))
        return found

    def _expand(self, record: OpRecord, event: Event) -> list[Step]:
        work = record.work
        if isinstance(work, EventSet):
            return [(SET, PIPE[work.source], PIPE[work.target], value(work.event, event), None, ())]
        if isinstance(work, EventWait):
            return [(WAIT, PIPE[work.target], PIPE[work.source], value(work.event, event), None, ())]
        if isinstance(work, Barrier):
            return [(BARRIER, ALL if work.pipe == "ALL" else PIPE[work.pipe], None, 0, None, ())]
        if isinstance(work, CrossSet):
            return [(CROSS_SET, PIPE[work.pipe], work.group, value(work.flag, event), None, ())]
        if isinstance(work, CrossWait):
            return [(CROSS_WAIT, PIPE[work.pipe], None, value(work.flag, event), None, ())]
        if isinstance(work, Nothing):
            return []
        if isinstance(work, Mmad):
            return self._macro(record, work, event)
        run: Step = (RUN, PIPE[record.pipe], None, 0, self._costs.cost(record, event), tuple(range(len(record.accesses))))
        if isinstance(work, Transfer) and work.unit_flag:
            return [(JOIN, PIPE["FIX"], PIPE["M"], 0, None, ()), run]
        return [run]

    def _macro(self, record: OpRecord, work: Mmad, event: Event) -> list[Step]:
        """L1 to L0A and L0B by MTE1 and multiplications by M, chunk by chunk of K, in halves of L0 in turn."""
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
        steps: list[Step] = []
        if work.unit_flag:
            steps.append((JOIN, mult, PIPE["FIX"], 0, None, ()))
        if not guarded:
            steps += [(SET, mult, load, _ENTRY, None, ()), (WAIT, load, mult, _ENTRY, None, ())]
        last = len(chunks) - 1
        for number, depth in enumerate(chunks):
            half = (first + number) % 2
            if guarded:
                steps.append((WAIT, load, mult, halves[half], None, ()))
            elif number >= 2:
                steps.append((WAIT, load, mult, _FREE + half, None, ()))
            if number == 0 and wait_a >= 0:
                steps.append((WAIT, load, move, wait_a, None, ()))
            steps.append((RUN, load, None, 0, self._costs.load_a(work, m, depth), (0,)))
            if number == last and free_a >= 0:
                steps.append((SET, load, move, free_a, None, ()))
            if number == 0 and wait_b >= 0:
                steps.append((WAIT, load, move, wait_b, None, ()))
            steps.append((RUN, load, None, 0, self._costs.load_b(work, depth, n), (1,)))
            if number == 0 and work.bias:
                steps.append((RUN, load, None, 0, self._costs.load_bias(n), (3,)))
            if number == last and free_b >= 0:
                steps.append((SET, load, move, free_b, None, ()))
            steps += [(SET, load, mult, _READY + half, None, ()), (WAIT, mult, load, _READY + half, None, ()),
                      (RUN, mult, None, 0, self._costs.multiply(work, m, depth, n), (2,))]
            if guarded:
                steps.append((SET, mult, load, halves[half], None, ()))
            elif number + 2 <= last:
                steps.append((SET, mult, load, _FREE + half, None, ()))
        return steps
