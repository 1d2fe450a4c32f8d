"""Draws the timeline of a block with matplotlib, for notebooks (``pip install 'tilelang-npu[viz]'``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_npu.errors import TileError
from tilelang_npu.simulator.result.profile.svg_charts import COLOURS
from tilelang_npu.target.chip_data import PIPES, Pipe

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch

ROW_INCHES = 0.35
"""The height of a pipe's row in the picture, in inches."""


def timeline(launch: Launch, block: int, axes: Any) -> Any:
    """Draws the timeline of a block: a row for each pipe of each core, a bar for each op, in the colour that the pipe has in
    all pictures.

    Args:
        launch: the launch.
        block: the number of the block.
        axes: the matplotlib axes to draw in; None makes a new figure.

    Returns:
        The axes.

    Raises:
        TileError: T412, matplotlib is not installed, or there is no such block.
    """
    if not 0 <= block < launch.blocks:
        raise TileError(f"there is no block {block}: the launch has {launch.blocks} blocks", code="T412",
                        help=f"give a number from 0 to {launch.blocks - 1}")
    try:
        from matplotlib import pyplot
    except ImportError:
        raise TileError("a picture needs matplotlib", code="T412", help="pip install 'tilelang-npu[viz]'") from None
    traced = launch.traced(launch.group_of_block[block])
    cores = traced.together.cores
    group = launch.group_of_block[block].run.block
    shown = [piece for piece in traced.slices
             if not launch.recorded.program.global_sync or cores[piece.core].block == block]
    rows = sorted({(cores[piece.core].kind != "AIC", cores[piece.core].label, piece.pipe) for piece in shown})
    if axes is None:
        _, axes = pyplot.subplots(figsize=(10, 1 + ROW_INCHES * len(rows)), layout="constrained")
    place = {row: number for number, row in enumerate(rows)}
    per_cycle = 1e6 / launch.chip.clock
    bars: dict[Pipe, list[tuple[int, float, float]]] = {}
    for piece in shown:
        core = cores[piece.core]
        row = place[core.kind != "AIC", core.label, piece.pipe]
        bars.setdefault(PIPES[piece.pipe], []).append((row, piece.start * per_cycle, (piece.end - piece.start) * per_cycle))
    for pipe in sorted(bars, key=PIPES.index):
        numbers, starts, widths = zip(*bars[pipe], strict=True)
        axes.barh(numbers, widths, left=starts, height=0.8, label=pipe, color=COLOURS[pipe], linewidth=0.3, edgecolor="white")
    axes.set_yticks(range(len(rows)), [f"{label} {PIPES[pipe]}" for _, label, pipe in rows])
    axes.invert_yaxis()
    axes.set_xlabel("µs, modelled")
    alike = "" if group == block else f" (as block {group})"
    axes.set_title(f"{launch.name}, block {block}{alike}, {launch.chip.name}", loc="left")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")
    return axes
