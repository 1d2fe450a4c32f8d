"""The timeline of a launch in the trace event format of Chrome, which Perfetto reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang_npu.simulator.result import JsonObject
from tilelang_npu.target.chip_data import PIPES

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.simulator.time.critical_path import CoreGroupTimes

MAX_EVENTS = 100_000
"""The number of trace events after which further blocks are omitted, because viewers become slow."""


def chrome_trace(launch: Launch) -> JsonObject:
    """Returns the timeline of a launch as Chrome trace events: a process for each core, a thread for each of its pipes, an
    event for each executed op. Times are in microseconds; the arguments of an event have its cycles.

    Each block is drawn on the core that runs it. After ``MAX_EVENTS`` events further blocks are omitted, and
    ``otherData.left_out`` is their number.
    """
    events: list[dict[str, object]] = []
    named: set[tuple[int, int]] = set()
    together = launch.recorded.program.global_sync
    left_out = 0
    traced: dict[int, CoreGroupTimes] = {}
    for place, (start, group) in enumerate(zip(launch.block_starts, launch.group_of_block, strict=True)):
        if together and place:
            continue  # one group contains the slices of all blocks
        if len(events) > MAX_EVENTS:
            left_out += 1
            continue
        if id(group) not in traced:
            traced[id(group)] = launch.traced(group)
        _draw(launch, traced[id(group)], place - group.run.block, start, events, named)
    return {"traceEvents": events, "displayTimeUnit": "ns",
            "otherData": {"kernel": launch.name, "chip": launch.chip.name, "blocks": launch.blocks, "left_out": left_out,
                          "time_us": launch.time_us, "launch_us": launch.launch_us}}


def _draw(launch: Launch, traced: CoreGroupTimes, shift: int, start: float, events: list[dict[str, object]],
          named: set[tuple[int, int]]) -> None:
    """Appends the trace events of a block, or of all blocks if they wait for each other.

    Args:
        launch: the launch.
        traced: the times of a block of the same group.
        shift: the number of the block minus the number of the block in ``traced``.
        start: the cycle in which the block begins.
        events: the list to append to.
        named: the processes and threads that have a name already.
    """
    per_cycle = 1e6 / launch.chip.clock
    lanes = len(launch.recorded.program.lanes)
    for piece in traced.slices:
        identity = traced.together.cores[piece.core]
        block = identity.block + shift
        process = block % launch.cores * lanes + piece.core % lanes
        record = traced.record(piece)
        _name_track(events, named, process, piece.pipe, f"core {block % launch.cores} {identity.label}")
        line = f" line {record.location.line}" if record.location is not None else ""
        details: dict[str, object] = {"cycles": round(piece.end - piece.start, 1), "block": block}
        if piece.nbytes and PIPES[piece.pipe] != "M":
            details["bytes"] = piece.nbytes
        if piece.reason:
            details["waited for"] = piece.reason
        if record.location is not None:
            details["source"] = str(record.location)
        events.append({"name": f"{record.mnemonic}{line}", "ph": "X", "pid": process, "tid": piece.pipe, "cat": "pipe",
                       "ts": (start + piece.start) * per_cycle, "dur": (piece.end - piece.start) * per_cycle,
                       "args": details})


def _name_track(events: list[dict[str, object]], named: set[tuple[int, int]], process: int, pipe: int, label: str) -> None:
    if (process, -1) not in named:
        named.add((process, -1))
        events.append({"name": "process_name", "ph": "M", "pid": process, "args": {"name": label}})
    if (process, pipe) not in named:
        named.add((process, pipe))
        events.append({"name": "thread_name", "ph": "M", "pid": process, "tid": pipe, "args": {"name": PIPES[pipe]}})
        events.append({"name": "thread_sort_index", "ph": "M", "pid": process, "tid": pipe, "args": {"sort_index": pipe}})
