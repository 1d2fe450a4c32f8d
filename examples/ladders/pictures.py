"""The pictures of a ladder's page: shares of the roof step by step, the last step's time by pipes, its place under the roof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import ladders
from ladders import Ladder, Step, Timed
from ladders.advised import Said
from tilelang_npu.charts import picture
from tilelang_npu.simulator.result.profile import drawings

COLOURS = ("#2f6f9f", "#d1782b", "#4b8f5a", "#8d5aa3", "#b24c4c", "#6b6b6b")
SLICES = 160
"""Pieces of work of a timeline."""


def shares(ladder: Ladder, steps: Sequence[Step], times: Sequence[Sequence[Timed]]) -> str:
    """Shares of the roof as bars: a group for each step, in it a bar for each size, with the model's error."""
    cases = ladder.large
    left, top, height, bar, gap = 44, 16, 220, 18, 26
    group = bar * len(cases) + gap
    width = max(left + group * len(steps) + 16, 480)
    legend = top + height + 34
    total = legend + 18 * len(cases) + 6
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{total}" viewBox="0 0 {width} {total}" '
           'font-family="sans-serif" font-size="12">', f'<rect width="{width}" height="{total}" fill="white"/>']
    for percent in (0, 25, 50, 75, 100):
        y = top + height * (1 - percent / 100)
        out.append(f'<line x1="{left}" x2="{width - 8}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>'
                   f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>')
    goal = top + height * (1 - ladder.goal)
    out.append(f'<line x1="{left}" x2="{width - 8}" y1="{goal:.1f}" y2="{goal:.1f}" stroke="#b24c4c" stroke-dasharray="5 4"/>')
    for number, (step, row) in enumerate(zip(steps, times, strict=True)):
        x = left + gap / 2 + number * group
        for place, timed in enumerate(row):
            tall = height * min(timed.share, 1.0)
            out.append(f'<rect x="{x + place * bar:.1f}" y="{top + height - tall:.1f}" width="{bar - 2}" height="{tall:.1f}" '
                       f'fill="{COLOURS[place % len(COLOURS)]}"><title>{escape(step.title)}: {timed.share:.1%}</title></rect>')
            low, high = (top + height * (1 - min(timed.share / (1 + side * timed.error), 1.04)) for side in (1, -1))
            middle = x + place * bar + bar / 2 - 1
            out.append(f'<path d="M{middle:.1f} {low:.1f}V{high:.1f}m-3 0h6M{middle - 3:.1f} {low:.1f}h6" stroke="#222222"/>')
        middle = x + bar * len(cases) / 2
        out.append(f'<text x="{middle:.1f}" y="{top + height + 16}" text-anchor="middle">step {number + 1}</text>')
    for place, case in enumerate(cases):
        y = legend + 18 * place
        out.append(f'<rect x="{left}" y="{y - 10}" width="12" height="12" fill="{COLOURS[place % len(COLOURS)]}"/>'
                   f'<text x="{left + 18}" y="{y}">{escape(ladders.name(case))}</text>')
    return "\n".join([*out, "</svg>", ""])


def timeline(said: Said) -> str:
    """What each pipe of a block does for a while, in the middle of the longest launch."""
    launch, parts = max(zip(said.profile.launch.parts, said.profile.parts, strict=True), key=lambda one: one[0].time_us)
    block = max(parts.blocks, key=lambda block: block.group.timing.cycles)
    return picture(drawings.timeline(launch, block, most=SLICES), f"{launch.name}, a part of a block")


def roofline(said: Mapping[str, Said]) -> str:
    """The steps under the roof, the last of them the large point; empty where nothing is computed."""
    found = {name: one.profile.roofline for name, one in said.items()}
    *_, last = found
    roof = found.pop(last)
    return picture(drawings.roof(roof, found), "under the roof") if roof.unit and roof.hbm_bytes else ""
