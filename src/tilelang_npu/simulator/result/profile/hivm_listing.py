"""The HIVM text of a launch with the time of each operation, for the page of a profile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

from tilelang_npu.html_sheet import row
from tilelang_npu.simulator.machine.op_records import number_of

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.simulator.result.profile.time_breakdown import BlockTimes

NO_TIME = '<span class="h"></span>'
"""The HTML of the margin of a line without a time."""


def hivm_listing(launch: Launch, block: BlockTimes, file: str) -> str:
    """Returns the HTML of a launch's HIVM text. In the margin of each line are the microseconds for which its operation keeps a
    pipe of one core at work, or for which it holds a pipe that waits, in one block.

    Args:
        launch: the launch.
        block: the times of the block.
        file: the source file of the page; lines that come from one of its lines are linked to it.
    """
    from tilelang_npu.dialects.text import print_module
    from tilelang_npu.dialects.text.located_lines import located_lines

    times = operation_times(launch, block)
    total = launch.chip.microseconds(max(block.group.timing.cycles, 1e-9))
    notes = {op: f"{us:.3f}" for op, us in times.items()}
    rows = []
    for line in located_lines(print_module(launch.recorded.program.module, locations=True, notes=notes)):
        margin = time_margin(float(line.note), total) if line.note else NO_TIME
        rows.append(row("", f"{margin}{escape(line.text)}", line.line if line.file == file else None))
    return f"<pre>{''.join(rows)}</pre>"


def time_margin(us: float, total: float) -> str:
    """Returns the HTML of a time for the margin of a listing, with a bar as long as its part of ``total``; both in
    microseconds."""
    return f'<span class="h" style="--part:{min(100.0, 100 * us / total):.1f}%">{us:.2f} us</span>'


def operation_times(launch: Launch, block: BlockTimes) -> Mapping[Operation, float]:
    """Returns the microseconds of each operation of a launch's module in one block; operations without time are left out.

    Work counts from its start on its pipe to the start of the pipe's next work or to its own end, whichever comes first, and
    waits and barriers count as long as they hold their pipe. If several cores of the block run a function, the times are those
    of the first of them.

    Args:
        launch: the launch.
        block: the times of the block.
    """
    program, together = launch.recorded.program, block.traced.together
    first: dict[int, int] = {}  # the position of the first core of each device function
    for core in range(len(together.cores)):
        first.setdefault(program.lanes[core % len(program.lanes)][0], core)
    cycles: dict[tuple[int, int], float] = defaultdict(float)
    for piece in block.traced.slices:
        cycles[piece.core, number_of(together.streams[piece.core][piece.event])] += piece.end - piece.start
    for (core, number, _), held in block.group.timing.held.items():
        cycles[core, number] += held
    found: dict[Operation, float] = {}
    for index, core in first.items():
        for op, record in zip(program.ops(index), program.functions[index].records, strict=True):
            spent = cycles.get((core, record.number), 0.0)
            if spent:
                found[op] = launch.chip.microseconds(spent)
    return found
