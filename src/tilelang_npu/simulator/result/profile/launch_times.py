"""The times of a launch: the reasons of its whole time, by pipe and by line."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilelang_npu.simulator.result.profile.block_times import BlockTimes, Row, block_times
from tilelang_npu.simulator.result.profile.parts_of_time import Reason

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch


@dataclass
class LaunchParts:
    """Microseconds of a launch, not rounded.

    Attributes:
        blocks: the times of its distinct blocks.
        path: the critical path of the core that ends last, by reason.
        pipes: by row the reasons of its pipes' time, averaged over the cores in use.
        work: the time of work by row and reason, averaged likewise.
    """

    blocks: list[BlockTimes]
    path: dict[Reason, float]
    pipes: dict[Row, dict[Reason, float]]
    work: dict[tuple[Row, Reason], float]


def launch_parts(launch: Launch) -> LaunchParts:
    """Returns the times of a launch."""
    blocks = {id(group): block_times(launch, group) for group in launch.groups}
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
    gaps = launch.chip.launch.block_us * max(0, launch.blocks - launch.cores) / taking_part
    for row_parts in pipes.values():
        for reason, time in _around(launch, us(idle), gaps):
            row_parts[reason] += time
        left = launch.time_us - sum(row_parts.values())
        if left > 0.0:  # blocks in which the pipe has no work
            row_parts[Reason("finished")] += left
    return LaunchParts(list(blocks.values()), dict(_path(launch, blocks, ends.index(max(ends)))),
                       {row: dict(parts) for row, parts in sorted(pipes.items())}, work)


def _around(launch: Launch, idle: float, gaps: float) -> Iterator[tuple[Reason, float]]:
    yield Reason("launch"), launch.launch_us
    yield Reason("next block"), gaps
    yield Reason("idle"), idle


def _path(launch: Launch, blocks: dict[int, BlockTimes], core: int) -> dict[Reason, float]:
    """Returns the critical path of the core that ends last: its blocks, one after the other."""
    path: dict[Reason, float] = defaultdict(float)
    path[Reason("launch")] = launch.launch_us
    own = Counter(id(group) for place, group in enumerate(launch.group_of_block) if place % launch.cores == core)
    if launch.recorded.program.global_sync:
        own = Counter(dict.fromkeys(own, 1))  # one group contains all blocks, which run concurrently
    path[Reason("next block")] = launch.chip.launch.block_us * (sum(own.values()) - 1)
    for key, count in own.items():
        for start, end, reason in blocks[key].path:
            path[reason] += launch.chip.microseconds(end - start) * count
    return path
