"""The occupancy of on-chip memories while a block runs: the number of live bytes over time. A byte is live from its first write
to its last read before it is written again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from tilelang_npu.simulator.machine.op_records import Mmad, footprint
from tilelang_npu.simulator.time.critical_path import DONE, START, CoreGroupTimes
from tilelang_npu.simulator.time.pipe_steps import PIPE, RUN
from tilelang_npu.target.chip_data import Space

MOST = 20_000
"""The maximum number of accesses of a block for which the occupancy is computed."""

Steps = list[tuple[float, int]]
"""A step function of time: pairs of a time in cycles from the start of the block, and the value from that time on."""


class _Spell(NamedTuple):
    """An access to an on-chip memory.

    Attributes:
        start: the start of the access, in cycles from the start of the block.
        end: the end of the access, in cycles from the start of the block.
        first: the offset of the first accessed byte in the memory.
        last: the offset after the last accessed byte.
        reads: whether the access reads.
        writes: whether the access writes.
    """

    start: float
    end: float
    first: int
    last: int
    reads: bool
    writes: bool


def occupancy(traced: CoreGroupTimes) -> dict[tuple[str, Space], Steps]:
    """Returns the number of live bytes over time, by (core, on-chip memory); empty for a block with more than ``MOST``
    accesses."""
    uses: dict[tuple[str, Space], list[_Spell]] = defaultdict(list)
    for count, (core, memory, use) in enumerate(_uses(traced)):
        uses[core, memory].append(use)
        if count == MOST:
            return {}
    found = {key: _alive(sorted(spells)) for key, spells in uses.items()} | _of_products(traced)
    return dict(sorted(found.items()))


def _of_products(traced: CoreGroupTimes) -> dict[tuple[str, Space], Steps]:
    """Returns the occupancy of L0A and L0B by the matmul macro, which loads its operands chunk by chunk. A chunk is live from
    the start of its load to the end of the last multiplication that uses it."""
    walked = traced.walked
    loads: dict[tuple[int, int, Space], list[tuple[float, int]]] = defaultdict(list)
    ends: dict[tuple[int, int], list[float]] = defaultdict(list)
    for ordered, point in zip(walked.order.steps, walked.points, strict=True):
        step, one = ordered.step, (ordered.core, ordered.number)
        if step.kind != RUN or not isinstance(traced.record(ordered).work, Mmad):
            continue
        if step.pipe == PIPE["M"]:
            ends[one].append(point.times[DONE])
        elif step.pipe == PIPE["MTE1"] and step.accesses[0] < 2:
            operand: Space = "cb" if step.accesses[0] else "ca"
            loads[ordered.core, ordered.number, operand].append((point.times[START], step.cost.nbytes))
    changes: dict[tuple[str, Space], dict[float, int]] = defaultdict(lambda: defaultdict(int))
    for (core, number, memory), chunks in loads.items():
        times, of = ends[core, number], changes[traced.together.cores[core].label, memory]
        for place, (start, nbytes) in enumerate(chunks):
            of[start] += nbytes
            of[times[len(times) * (place + 1) // len(chunks) - 1]] -= nbytes
    return {key: _sums(of) for key, of in changes.items()}


def _sums(changes: Mapping[float, int]) -> Steps:
    found, now = [(0.0, 0)], 0
    for time in sorted(changes):
        now += changes[time]
        found.append((time, now))
    return found


def _uses(traced: CoreGroupTimes) -> Iterator[tuple[str, Space, _Spell]]:
    walked = traced.walked
    for ordered, point in zip(walked.order.steps, walked.points, strict=True):
        if ordered.step.kind != RUN:
            continue
        record, event = traced.record(ordered), traced.together.streams[ordered.core][ordered.number]
        label = traced.together.cores[ordered.core].label
        for number in ordered.step.accesses:
            access = record.accesses[number]
            if access.memory != "gm":
                place = footprint(access, event)
                if not place.empty:
                    yield (access.holder or label), access.memory, _Spell(
                        point.times[START], point.times[DONE], place.offset, place.end, access.reads, access.writes)


def _alive(uses: list[_Spell]) -> Steps:
    """Returns the number of live bytes over time, from the accesses to one memory, sorted by their start."""
    edges = np.unique([edge for use in uses for edge in (use.first, use.last)])
    sizes = np.diff(edges)
    begin = np.full(len(sizes), np.nan)
    last, was_read = np.zeros(len(sizes)), np.zeros(len(sizes), bool)
    changes: dict[float, int] = defaultdict(int)

    def close(which: np.ndarray[tuple[int], np.dtype[np.intp]]) -> None:
        for cell in which:
            if last[cell] > begin[cell]:
                changes[float(begin[cell])] += int(sizes[cell])
                changes[float(last[cell])] -= int(sizes[cell])

    for use in uses:
        cells = np.arange(*np.searchsorted(edges, (use.first, use.last)))
        if use.writes and not use.reads:
            close(cells[was_read[cells]])
            begin[cells] = np.where(was_read[cells], use.start, np.fmin(begin[cells], use.start))
            was_read[cells] = False
        else:
            begin[cells] = np.fmin(begin[cells], use.start)
            was_read[cells] = True
        last[cells] = np.maximum(last[cells], use.end)
    close(np.flatnonzero(~np.isnan(begin)))
    return _sums(changes)
