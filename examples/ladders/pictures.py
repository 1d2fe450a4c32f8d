"""The pictures of a ladder's page: the share of the roofline by step, the timeline of the last step, and the roofline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ladders
from ladders import Ladder, Timed
from ladders.profile_summary import ProfileSummary
from tilelang_npu.charts import Curve, curves, picture
from tilelang_npu.simulator.result.profile import svg_charts

GOAL = "#b24c4c"
"""The colour of the line that marks the goal."""
SLICES = 160
"""The number of intervals of a timeline."""


def draw_shares(ladder: Ladder, times: Sequence[Sequence[Timed]]) -> str:
    """Returns the picture of the share of the roofline by step: a curve for each size, with the model's error, and the goal."""
    drawn = [Curve(ladders.case_name(case), [(step, 100 * timed.share) for step, timed in enumerate(row, 1)],
                   [(100 * timed.share / (1 + timed.error), 100 * timed.share / (1 - timed.error)) for timed in row])
             for case, row in zip(ladder.large, zip(*times, strict=True), strict=True)]
    goal = Curve("the goal", [(step, 100 * ladder.goal) for step in (0, len(times) + 1)], colour=GOAL, dashed=True)
    return curves([*drawn, goal], title="Share of the roofline", y="%",
                  x_ticks={step: f"step {step}" for step in range(1, len(times) + 1)})


def draw_timeline(summary: ProfileSummary) -> str:
    """Returns the timeline of the pipes of a block, for an interval in the middle of the longest launch."""
    launch, parts = max(zip(summary.profile.launch.parts, summary.profile.parts, strict=True), key=lambda one: one[0].time_us)
    block = max(parts.blocks, key=lambda block: block.group.timing.cycles)
    return picture(svg_charts.timeline(launch, block, most=SLICES), f"{launch.name}, part of one block")


def draw_roofline(summaries: Mapping[str, ProfileSummary]) -> str:
    """Returns the roofline with a point for each step, the last one large; empty if the problem has no operations."""
    found = {name: one.profile.roofline for name, one in summaries.items()}
    *_, last = found
    roof = found.pop(last)
    return picture(svg_charts.roof(roof, found), "roofline") if roof.unit and roof.memory_bytes else ""
