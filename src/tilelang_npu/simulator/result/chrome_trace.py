"""The timeline of a launch in the trace event format of Chrome, which Perfetto reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tilelang_npu.simulator.result import JsonObject
from tilelang_npu.simulator.result.profile.occupancy import occupancy
from tilelang_npu.simulator.time.critical_path import DONE, START
from tilelang_npu.simulator.time.pipe_steps import RUN
from tilelang_npu.target import name_of
from tilelang_npu.target.chip_data import PIPES

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.simulator.time.critical_path import CoreGroupTimes

MAX_SLICES = 100_000
"""The number of slices after which further blocks are omitted, because viewers become slow."""
_BINS = 500
"""The number of intervals of time into which the traffic of a launch is divided."""
_Event = dict[str, object]


def chrome_trace(launch: Launch) -> JsonObject:
    """Returns the timeline of a launch as Chrome trace events. Times are in microseconds from the start of the first block.

    - A process for each core, a thread for each of its pipes, an event for each executed op; its arguments have its cycles.
      Each block is drawn on the core that runs it. After ``MAX_SLICES`` ops further blocks are omitted, and
      ``otherData.left_out`` is their number.
    - A flow (category ``wait``, or ``hand-over`` between cores) from the work that a set of an event or a flag waited for to
      the first work after the wait for it.
    - Counters: the live bytes of each on-chip memory in the process of its core, and for the whole chip the bytes per second
      that come from or go to HBM and L2, averaged over 500 intervals of the launch. Counters of the chip count all blocks.
    - A process with the launch: the time in which blocks run, and the launch overhead. Part of the overhead precedes the first
      block; all of it is drawn after the last one.
    """
    events: list[_Event] = []
    named: set[tuple[int, int]] = set()
    together = launch.recorded.program.global_sync
    left_out = slices = flows = 0
    traced: dict[int, _BlockEvents] = {}
    last = min(launch.cores, launch.blocks) * len(launch.recorded.program.lanes)
    traffic = _Traffic(launch)
    for place, (start, group) in enumerate(zip(launch.block_starts, launch.group_of_block, strict=True)):
        if together and place:
            continue  # one group contains the slices of all blocks
        if id(group) not in traced:
            traced[id(group)] = _BlockEvents(launch, launch.traced(group))
        block = traced[id(group)]
        traffic.add(block.times, start)
        if slices > MAX_SLICES:
            left_out += 1
            continue
        slices += len(block.slices)
        shift = place - group.run.block
        events += block.slice_events(shift, start, named)
        events += block.flow_events(shift, start, flows)
        events += block.memory_events(shift, start)
        flows += len(block.flows)
    events += _launch_events(launch, last)
    events += traffic.events(last)
    return {"traceEvents": events, "displayTimeUnit": "ns",
            "otherData": {"kernel": launch.name, "chip": launch.chip.name, "blocks": launch.blocks, "left_out": left_out,
                          "time_us": launch.time_us, "launch_us": launch.launch_us}}


class _BlockEvents:
    """The events of a block, or of all blocks if they wait for each other.

    The methods take the number of the drawn block minus the number of the traced one, and the cycle in which the block begins.

    Args:
        launch: the launch.
        times: the times of a block of the group.
    """

    def __init__(self, launch: Launch, times: CoreGroupTimes) -> None:
        self._launch = launch
        self._per_cycle = 1e6 / launch.chip.clock
        self._lanes = len(launch.recorded.program.lanes)
        self.times = times
        self.slices = times.slices
        self.flows = times.flows
        labels = [core.label for core in times.together.cores]
        # of blocks that run together, the cores have the same labels, and their memories cannot be distinguished
        self._memories = occupancy(times) if len({*labels}) == len(labels) else {}

    def _process(self, core: int, shift: int) -> int:
        block = self.times.together.cores[core].block + shift
        return block % self._launch.cores * self._lanes + core % self._lanes

    def slice_events(self, shift: int, start: float, named: set[tuple[int, int]]) -> Iterator[_Event]:
        """Yields an event for each executed op, and the names of the processes and threads that are not in ``named`` yet."""
        for piece in self.slices:
            identity = self.times.together.cores[piece.core]
            block = identity.block + shift
            process = self._process(piece.core, shift)
            record = self.times.record(piece)
            yield from _names(named, process, piece.pipe, f"core {block % self._launch.cores} {identity.label}")
            line = f" line {record.location.line}" if record.location is not None else ""
            details: dict[str, object] = {"cycles": round(piece.end - piece.start, 1), "block": block}
            if piece.nbytes and PIPES[piece.pipe] != "M":
                details["bytes"] = piece.nbytes
            if piece.reason:
                details["waited for"] = piece.reason
            if record.location is not None:
                details["source"] = f"{record.location}{record.location.calls}"
            yield {"name": f"{record.mnemonic}{line}", "ph": "X", "pid": process, "tid": piece.pipe, "cat": "pipe",
                   **_whole_nanoseconds((start + piece.start) * self._per_cycle, (start + piece.end) * self._per_cycle),
                   "args": details}

    def flow_events(self, shift: int, start: float, first: int) -> Iterator[_Event]:
        """Yields the two events of each flow; the numbers of the flows begin after ``first``."""
        for number, flow in enumerate(self.flows, first + 1):
            for phase, place in (("s", flow.first), ("f", flow.second)):
                piece = self.slices[place]
                # A viewer finds the slice of an end of a flow by its time: the middle is in the slice after any rounding.
                middle = (piece.start + piece.end) / 2
                yield {"name": flow.name, "ph": phase, "id": number, "pid": self._process(piece.core, shift), "tid": piece.pipe,
                       "cat": "hand-over" if flow.crosses else "wait", "ts": (start + middle) * self._per_cycle,
                       **({"bp": "e"} if phase == "f" else {})}

    def memory_events(self, shift: int, start: float) -> Iterator[_Event]:
        """Yields the live bytes of each memory whenever they change."""
        cores = {core.label: place for place, core in enumerate(self.times.together.cores)}
        for (label, space), steps in self._memories.items():
            if label in cores:
                for time, nbytes in steps:
                    yield {"name": f"{name_of(space)} bytes", "ph": "C", "pid": self._process(cores[label], shift),
                           "ts": (start + time) * self._per_cycle, "args": {"live": nbytes}}


class _Traffic:
    """The bytes that a launch moves from and to HBM and L2 over time.

    Args:
        launch: the launch.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._edges = np.linspace(0.0, max(launch.cycles, 1e-9), _BINS + 1)
        self._bytes = {name: np.zeros(_BINS) for name in ("HBM", "L2")}
        self._curves: dict[int, dict[str, tuple[np.ndarray, np.ndarray]]] = {}

    def add(self, times: CoreGroupTimes, start: float) -> None:
        """Adds the bytes of a block that begins in a cycle."""
        if id(times) not in self._curves:
            self._curves[id(times)] = self._curves_of(times)
        for name, (moments, moved) in self._curves[id(times)].items():
            self._bytes[name] += np.diff(np.interp(self._edges - start, moments, moved))

    def _curves_of(self, times: CoreGroupTimes) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Returns, for HBM and L2, cycles of a block and the bytes that were moved until then."""
        changes: dict[str, dict[float, float]] = {name: defaultdict(float) for name in self._bytes}
        for ordered, point in zip(times.walked.order.steps, times.walked.points, strict=True):
            if ordered.step.kind != RUN:
                continue
            start, end = point.times[START], max(point.times[DONE], point.times[START] + 1e-6)
            for part in ordered.step.cost.gm:
                served = self._launch.serves.get((part.buffer, part.written))
                far = served.far if served is not None else 0.0
                for name, share in (("HBM", far), ("L2", 1.0 - far)):
                    rate = part.nbytes * share / (end - start)
                    changes[name][start] += rate
                    changes[name][end] -= rate
        found = {}
        for name, rates in changes.items():
            moments = np.array(sorted(rates)) if rates else np.zeros(1)
            speed = np.cumsum([rates[moment] for moment in moments.tolist()]) if rates else np.zeros(1)
            moved = np.concatenate([[0.0], np.cumsum(speed[:-1] * np.diff(moments))])
            found[name] = moments, moved
        return found

    def events(self, process: int) -> Iterator[_Event]:
        """Yields the mean gigabytes per second in each interval, and zero at the end of the launch."""
        per_cycle = 1e6 / self._launch.chip.clock
        seconds = (self._edges[1] - self._edges[0]) / self._launch.chip.clock
        for name, moved in self._bytes.items():
            for time, rate in zip(self._edges.tolist(), [*(moved / seconds / 1e9).tolist(), 0.0], strict=True):
                yield {"name": f"{name} GB/s", "ph": "C", "pid": process, "ts": time * per_cycle, "args": {"rate": rate}}


def _whole_nanoseconds(start: float, end: float) -> _Event:
    """Returns the times of a slice, which begins and ends at whole nanoseconds.

    Perfetto converts the begin and the duration separately. Slices of one pipe that follow each other within a nanosecond would
    then overlap, and Perfetto drops slices that overlap without being nested. A quarter of a nanosecond is added to the begin,
    so that its conversion gives the same whether it rounds or truncates.

    Args:
        start, end: the times in microseconds.
    """
    first, last = round(start * 1000), round(end * 1000)
    return {"ts": (first + 0.25) / 1000, "dur": (last - first) / 1000}


def _launch_events(launch: Launch, process: int) -> Iterator[_Event]:
    """Yields the slices of the launch: the time from the first to the last block, and the launch overhead."""
    running = launch.chip.microseconds(launch.cycles)
    yield {"name": "process_name", "ph": "M", "pid": process, "args": {"name": "launch"}}
    yield {"name": "thread_name", "ph": "M", "pid": process, "tid": 0, "args": {"name": "launch"}}
    about = {"kernel": launch.name, "chip": launch.chip.name, "blocks": launch.blocks, "waves": launch.waves,
             "cores": min(launch.cores, launch.blocks)}
    yield {"name": launch.name, "ph": "X", "pid": process, "tid": 0, "cat": "launch", **_whole_nanoseconds(0.0, running),
           "args": about}
    yield {"name": "launch overhead", "ph": "X", "pid": process, "tid": 0, "cat": "launch",
           **_whole_nanoseconds(running, running + launch.launch_us), "args": {}}


def _names(named: set[tuple[int, int]], process: int, pipe: int, label: str) -> Iterator[_Event]:
    if (process, -1) not in named:
        named.add((process, -1))
        yield {"name": "process_name", "ph": "M", "pid": process, "args": {"name": label}}
    if (process, pipe) not in named:
        named.add((process, pipe))
        yield {"name": "thread_name", "ph": "M", "pid": process, "tid": pipe, "args": {"name": PIPES[pipe]}}
        yield {"name": "thread_sort_index", "ph": "M", "pid": process, "tid": pipe, "args": {"sort_index": pipe}}
