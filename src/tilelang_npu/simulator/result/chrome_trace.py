"""The timeline of a launch in the trace event format of Chrome, which Perfetto reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang_npu.simulator.result import JsonObject
from tilelang_npu.simulator.time.pipe_steps import PIPES

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.simulator.time.critical_path import CoreGroupTimes

MAX_EVENTS = 100_000
"""Slices from which on later blocks are omitted; viewers become slow beyond."""


def chrome_trace(launch: Launch) -> JsonObject:
    """Returns the events: one process per core, one thread per pipe; times in microseconds, cycles in the arguments.

    Every block is drawn on the core that runs it, up to ``MAX_EVENTS``; ``otherData.left_out`` counts the omitted blocks.
    """
    events: list[dict[str, object]] = []
    named: set[tuple[int, int]] = set()
    clocks = [0.0] * max(1, launch.cores)
    gap = launch.chip.launch.block_us * 1e-6 * launch.chip.clock
    together = launch.recorded.program.global_sync
    left_out = 0
    traced: dict[int, CoreGroupTimes] = {}
    for place, group in enumerate(launch.group_of_block):
        core = place % launch.cores
        start = clocks[core] + (gap if place >= launch.cores else 0.0)
        clocks[core] = start + group.timing.cycles
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
    """Adds the slices of a block, or of all blocks that run together; ``shift`` is the block's distance from the traced one."""
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
