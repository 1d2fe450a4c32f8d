"""What lies in the memories of a core while a block runs: bytes that somebody still reads, over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tilelang_npu.simulator.machine.events import footprint
from tilelang_npu.simulator.time.steps import RUN
from tilelang_npu.simulator.time.walked import DONE, START, TracedTimes

MOST = 20_000
"""Accesses of a block that are followed; of a longer one nothing is said."""

Steps = list[tuple[float, int]]
"""A number over time: from each moment on, in cycles from the start of the block."""


class _Spell(NamedTuple):
    """An access: when it begins and ends, its bytes, and whether it leaves nothing of what was there."""

    start: float
    end: float
    first: int
    last: int
    reads: bool
    writes: bool


def occupancy(traced: TracedTimes) -> dict[tuple[str, str], Steps]:
    """Bytes in use by core and memory; empty where a block does too much to follow."""
    uses: dict[tuple[str, str], list[_Spell]] = defaultdict(list)
    for count, (core, memory, use) in enumerate(_uses(traced)):
        uses[core, memory].append(use)
        if count == MOST:
            return {}
    return {key: _alive(sorted(found)) for key, found in sorted(uses.items())}


def _uses(traced: TracedTimes) -> Iterator[tuple[str, str, _Spell]]:
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
    """From the first write of bytes to the last read before they are written again."""
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
    found, now = [(0.0, 0)], 0
    for time in sorted(changes):
        now += changes[time]
        found.append((time, now))
    return found
