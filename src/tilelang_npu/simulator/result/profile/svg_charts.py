"""The pictures of a profile as SVG text: a timeline, a roofline, the use of memories and the traffic over time, and the parts
of a time as a bar."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Literal

from tilelang_npu.simulator.result.profile.occupancy import occupancy
from tilelang_npu.simulator.result.profile.roofline import Roofline
from tilelang_npu.simulator.result.profile.time_breakdown import BlockTimes
from tilelang_npu.simulator.result.profile.time_parts import WORK, Reason
from tilelang_npu.simulator.time.critical_path import DONE, START
from tilelang_npu.simulator.time.pipe_steps import RUN
from tilelang_npu.target import name_of
from tilelang_npu.target.chip_data import PIPES, Pipe

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch

WIDTH = 1000
"""The width of a picture, in units of the SVG's view box."""
MARGIN = 92
"""The width of the column with the names of the rows, in units of the view box."""
ROW = 18
"""The height of a row of a timeline, in units of the view box."""
MOST_SLICES = 6000
"""The maximum number of bars of a timeline; a note says how many are left out."""
MOST_CORES = 6
"""The maximum number of cores in a timeline of blocks that run together."""
BINS = 160
"""The number of intervals of time into which the traffic is divided."""
CORE_ROW, MANY_CORES = 7, 16
"""The height of a core's row where there are more cores than the second number, in units of the view box."""
WAVES = ("#4e79d8", "#8fb0ec")
"""The colours of blocks in even and in odd waves."""
COLOURS = {"S": "#8c8c8c", "V": "#3fa45b", "M": "#4e79d8", "MTE1": "#9b6fd0", "MTE2": "#e0863a", "MTE3": "#d0a52c",
           "FIX": "#cf5b9d", "": "#b8bec5"}
"""The colour of each pipe; the empty name is for time without a pipe."""


def timeline(launch: Launch, block: BlockTimes, most: int = 0, *, flows: bool = False) -> str:
    """Returns the SVG of a block's timeline: a row for the critical path, and a row for each pipe of each core.

    Args:
        launch: the launch.
        block: the times of the block.
        most: the number of executed steps to show, from the middle of the block; 0 for all.
        flows: whether a line leads from the work that the set of an event or a flag waited for to the work after its wait; only
            with ``most`` 0.
    """
    per_cycle = 1e6 / launch.chip.clock
    total = max(block.group.timing.cycles, 1e-9)
    cores = block.traced.together.cores[:MOST_CORES]
    slices = [piece for piece in block.traced.slices if piece.core < len(cores)]
    path = block.path
    first = 0.0
    if 0 < most < len(slices):
        starts = sorted(piece.start for piece in slices)
        first, last = (starts[(len(starts) + side * most) // 2] for side in (-1, 1))
        total = max(last - first, 1e-9)
        slices = [piece._replace(start=max(piece.start, first) - first, end=min(piece.end, last) - first)
                  for piece in slices if piece.end > first and piece.start < last]
        path = [stretch._replace(start=max(stretch.start, first) - first, end=min(stretch.end, last) - first)
                for stretch in path if stretch.end > first and stretch.start < last]
    rows = sorted({(piece.core, piece.pipe) for piece in slices})
    place = {row: number + 1 for number, row in enumerate(rows)}
    shown = [_names(["critical path", *(f"{cores[core].label} {PIPES[pipe]}" for core, pipe in rows)])]

    def bar(row: int, start: float, end: float, pipe: Pipe | Literal[""], line: int | None, said: str, kind: str = "") -> str:
        x = MARGIN + (WIDTH - MARGIN) * start / total
        wide = max((WIDTH - MARGIN) * (end - start) / total, 0.4)
        about = "" if line is None else f' data-p="{line}"'
        when = f"{(first + start) * per_cycle:.3f} to {(first + end) * per_cycle:.3f} us"
        return (f'<rect x="{x:.2f}" y="{row * ROW + 2}" width="{wide:.2f}" height="{ROW - 4}" fill="{COLOURS[pipe]}"'
                f"{kind}{about}><title>{escape(said)}, {when}</title></rect>")

    for stretch in path[:MOST_SLICES]:
        reason = stretch.reason
        shown.append(bar(0, stretch.start, stretch.end, reason.pipe, reason.place.line if reason.place else None, str(reason),
                         "" if reason.kind in WORK else ' opacity="0.3"'))
    for piece in slices[:MOST_SLICES]:
        record = block.traced.record(piece)
        waited = f", waited for {piece.reason}" if piece.reason else ""
        where = f" line {record.location.line}" if record.location is not None else ""
        shown.append(bar(place[piece.core, piece.pipe], piece.start, piece.end, PIPES[piece.pipe],
                         record.location.line if record.location is not None else None, f"{record.mnemonic}{where}{waited}"))
    height = ROW * (len(rows) + 1)
    if flows and not most:
        shown += _flows(block, place, total)
    shown.append(_time_axis(total * per_cycle, height))
    left, more = len(slices) - MOST_SLICES, len(block.traced.together.cores) - len(cores)
    notes = [f"{left} later slices are left out"] * (left > 0) + [f"{more} more cores run at the same time"] * (more > 0)
    shown += [f'<text x="0" y="{height + 34}">{"; ".join(notes)}</text>'] * bool(notes)
    return _svg("".join(shown), height + 22 + 18 * bool(notes), "timeline")


def _flows(block: BlockTimes, place: Mapping[tuple[int, int], int], total: float) -> Iterator[str]:
    """Yields the SVG of the lines from sets to waits, those between cores wider.

    Args:
        block: the times of the block.
        place: the row of each core and pipe that is shown.
        total: the cycles of the block.
    """
    slices = block.traced.slices
    for flow in block.traced.flows[:MOST_SLICES]:
        first, second = slices[flow.first], slices[flow.second]
        if (first.core, first.pipe) in place and (second.core, second.pipe) in place:
            (x, y), (to, down) = ((MARGIN + (WIDTH - MARGIN) * time / total, ROW * (place[piece.core, piece.pipe] + 0.5))
                                  for piece, time in ((first, first.end), (second, second.start)))
            yield (f'<path class="flow" d="M{x:.1f} {y:.1f}L{to:.1f} {down:.1f}" stroke-width="{2 if flow.crosses else 1}">'
                   f"<title>{escape(flow.name)}</title></path>")


def cores(launch: Launch) -> str:
    """Returns the SVG of all cores and waves of a launch: a row for each core, a bar for each block, in one colour for even and
    in another one for odd waves. Where a row is empty, its core is idle.

    Args:
        launch: the launch.
    """
    total = max(launch.cycles, 1e-9)
    used = min(launch.cores, launch.blocks)
    tall = max(CORE_ROW, ROW // 2 if used <= MANY_CORES else CORE_ROW)
    shown = []
    blocks = list(zip(launch.block_starts, launch.group_of_block, strict=True))
    for number, (start, group) in enumerate(blocks[:MOST_SLICES]):
        core, wave = number % used, number // used
        x = MARGIN + (WIDTH - MARGIN) * start / total
        wide = (WIDTH - MARGIN) * group.timing.cycles / total
        first, last = (launch.chip.microseconds(time) for time in (start, start + group.timing.cycles))
        shown.append(f'<rect x="{x:.2f}" y="{core * tall + 1}" width="{max(wide - 0.6, 0.4):.2f}" height="{tall - 2}"'
                     f' fill="{WAVES[wave % 2]}"><title>core {core}, block {number}, wave {wave + 1}, {first:.3f} to'
                     f" {last:.3f} us</title></rect>")
    height = tall * used
    every = max(1, -(-14 // tall))  # texts of rows must not overlap
    names = "".join(f'<text x="0" y="{core * tall + tall / 2 + 4:.1f}">core {core}</text>' for core in range(0, used, every))
    left = len(blocks) - MOST_SLICES
    note = f'<text x="0" y="{height + 34}">{left} later blocks are left out</text>' if left > 0 else ""
    return _svg(f"{names}{''.join(shown)}{_time_axis(launch.chip.microseconds(total), height)}{note}",
                height + 22 + 18 * bool(note), "cores")


def _svg(body: str, height: float, kind: str) -> str:
    scaled = ' preserveAspectRatio="none"' if kind == "parts" else ""  # a bar without text keeps its height in a narrow column
    return f'<svg class="{kind}" viewBox="0 0 {WIDTH} {height:.0f}"{scaled} role="img" aria-label="{kind}">{body}</svg>'


def _names(names: Sequence[str]) -> str:
    return "".join(f'<text x="0" y="{row * ROW + 13}">{escape(name)}</text>' for row, name in enumerate(names))


def _time_axis(us: float, y: float) -> str:
    """Returns the time axis of a picture.

    Args:
        us: the duration that the picture shows, in microseconds.
        y: the height of the picture above the axis.
    """
    step = _step(us / 6)
    ticks = [number * step for number in range(int(us / step) + 1)]
    shown = "".join(f'<path d="M{_at(tick, us):.1f} 0V{y:.0f}"/>' for tick in ticks)
    labels = "".join(f'<text x="{_at(tick, us):.1f}" y="{y + 15:.0f}" class="t">{tick:g}'
                     f'{" us" if tick == ticks[-1] else ""}</text>' for tick in ticks)
    return f'<g class="grid">{shown}</g>{labels}'


def _at(time: float, total: float) -> float:
    return MARGIN + (WIDTH - MARGIN) * time / total


def _step(rough: float) -> float:
    """Returns the number of the form 1, 2 or 5 times a power of ten that is closest to ``rough``."""
    if rough <= 0:
        return 1.0
    power = 10.0 ** int(log10(rough) - (rough < 1))
    return min((number * power for number in (1, 2, 5, 10)), key=lambda step: abs(step - rough))


def traffic(launch: Launch, block: BlockTimes) -> str:
    """Returns the SVG of the bytes per second that the cores of a block read from and write to GM, over time."""
    total = max(block.group.timing.cycles, 1e-9)
    bins = {False: [0.0] * BINS, True: [0.0] * BINS}
    for ordered, point in zip(block.traced.walked.order.steps, block.traced.walked.points, strict=True):
        if ordered.step.kind == RUN:
            for part in ordered.step.cost.gm:
                _spread(bins[part.written], point.times[START] / total, point.times[DONE] / total, part.nbytes)
    per_second = launch.chip.clock * BINS / total / 1e9
    rates = {name: [nbytes * per_second for nbytes in bins[written]] for name, written in (("read", False), ("written", True))}
    top = max(max(row) for row in rates.values())
    return _areas({f"GM {name}, at most {max(row):.0f} GB/s": ([(time / BINS, rate) for time, rate in enumerate(row)], top)
                   for name, row in rates.items()}, launch.chip.microseconds(total))


def _spread(bins: list[float], start: float, end: float, nbytes: float) -> None:
    """Distributes the bytes of a transfer evenly among the intervals of time in which it takes place.

    Args:
        bins: the number of bytes in each of the equally long intervals of the block's time; updated in place.
        start: the start of the transfer, as a share of the block's time.
        end: the end of the transfer, as a share of the block's time.
        nbytes: the number of bytes of the transfer.
    """
    width = max(end - start, 1e-12)
    for number in range(min(int(start * BINS), BINS - 1), min(int(end * BINS), BINS - 1) + 1):
        within = min(end, (number + 1) / BINS) - max(start, number / BINS)
        bins[number] += nbytes * max(within, 0.0) / width


def memory(launch: Launch, block: BlockTimes) -> str:
    """Returns the SVG of the number of live bytes in each on-chip memory of a block's cores over time."""
    total = max(block.group.timing.cycles, 1e-9)
    found = {}
    labels = {core.label for core in block.traced.together.cores[:MOST_CORES]}
    for (core, space), steps in occupancy(block.traced).items():
        if core in labels:
            room = launch.chip.memory[space].size
            most = max(size for _, size in steps)
            found[f"{core} {name_of(space)}, at most {most / 1024:.0f} of {room // 1024} KB"] = (
                [(time / total, float(size)) for time, size in steps], float(room))
    return _areas(found, launch.chip.microseconds(total)) if found else "<p>The block has too many accesses to follow.</p>"


def _areas(rows: Mapping[str, tuple[Sequence[tuple[float, float]], float]], us: float) -> str:
    """Returns the SVG of step functions of time, one above the other.

    Args:
        rows: for each name, the function as pairs of a time (as a share of the whole time) and a value, and the value that
            corresponds to the full height.
        us: the whole time in microseconds.
    """
    tall = 34
    shown = []
    for number, (name, (steps, top)) in enumerate(rows.items()):
        base = number * (tall + 16) + tall + 14
        path = [f"M{MARGIN} {base}"]
        for moment, size in steps:
            path.append(f"H{MARGIN + (WIDTH - MARGIN) * moment:.1f}V{base - tall * size / max(top, 1e-9):.1f}")
        path.append(f"H{WIDTH}V{base}Z")
        shown.append(f'<text x="{MARGIN}" y="{base - tall - 3}">{escape(name)}</text><path class="area" d="{"".join(path)}"/>'
                     f'<path class="rule" d="M{MARGIN} {base}H{WIDTH}"/>')
    height = len(rows) * (tall + 16) + 2
    return _svg("".join(shown) + _time_axis(us, height), height + 22, "areas")


def roof(roofline: Roofline, before: Mapping[str, Roofline] | None = None) -> str:
    """Returns the SVG of a roofline: operations per second over operations per byte of memory, both on logarithmic axes.

    Args:
        roofline: the figures of the call.
        before: the figures of other calls to draw for comparison, by name. Calls whose work is done by another kind of unit, or
            whose memory is another one, are left out.
    """
    if not roofline.unit or not roofline.memory_bytes:
        return "<p>Nothing is computed, or nothing is read from GM or written to it.</p>"
    others = {name: one for name, one in (before or {}).items() if (one.unit, one.memory) == (roofline.unit, roofline.memory)}
    shown = [roofline, *others.values()]
    ridge = roofline.peak / roofline.memory_rate
    left, right = log10(min(ridge, *(one.intensity for one in shown)) / 30), log10(
        max(ridge, *(one.intensity for one in shown)) * 30)
    top = log10(roofline.peak) + 0.3
    bottom = min(*(log10(one.achieved) for one in shown), log10(10**left * roofline.memory_rate)) - 0.3
    high = 300

    def place(intensity: float, rate: float) -> tuple[float, float]:
        x = MARGIN + (WIDTH - MARGIN) * (log10(intensity) - left) / (right - left)
        return x, high * (top - log10(rate)) / (top - bottom)

    def at(intensity: float, rate: float) -> str:
        return "{:.1f} {:.1f}".format(*place(intensity, rate))

    point = at(roofline.intensity, roofline.achieved).split()
    ticks = []
    for power in range(ceil(left), floor(right) + 1):
        x = at(10.0**power, roofline.peak).split()[0]
        ticks.append(f'<path class="grid" d="M{x} 0V{high}"/><text x="{x}" y="{high + 15}" class="t">{10.0**power:g}</text>')
    for power in range(ceil(bottom), floor(top) + 1):
        y = at(1.0, 10.0**power).split()[1]
        unit = 10.0 ** (power - 12)
        ticks.append(f'<path class="grid" d="M{MARGIN} {y}H{WIDTH}"/><text x="0" y="{float(y) + 4:.1f}">{unit:g} T/s</text>')
    under = at(roofline.intensity, roofline.attainable)
    share = f"{100 * roofline.achieved / roofline.attainable:.1f} % of attainable"
    marks = "".join(_marks({name: place(one.intensity, one.achieved) for name, one in others.items()}))
    anchor = ' text-anchor="end"' if float(point[0]) > WIDTH * 0.7 else ""
    shift = -9 if anchor else 9
    body = (f'{"".join(ticks)}<path class="roof" d="M{at(10**left, 10**left * roofline.memory_rate)}L{at(ridge, roofline.peak)}'
            f'L{at(10**right, roofline.peak)}"/><path class="fall" d="M{under}L{" ".join(point)}"/>{marks}'
            f'<circle cx="{point[0]}" cy="{point[1]}" r="6"/>'
            f'<text x="{float(point[0]) + shift:.1f}" y="{float(point[1]) + 4:.1f}"{anchor}>{share}</text>')
    below = f"operations of the {roofline.unit} cores per byte of {roofline.memory}"
    return _svg(f'{body}<text x="{WIDTH}" y="{high + 32}" text-anchor="end">{below}</text>', high + 38, "roofline")


def _marks(points: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    """Yields the SVG of small points with their names; points of about equal height share one text."""
    rows: dict[int, list[str]] = {}
    for name, (x, y) in points.items():
        rows.setdefault(round(y / ROW), []).append(name)
        yield f'<circle class="before" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    for names in rows.values():
        x, y = min(points[name] for name in names)
        yield f'<text x="{x - 9:.1f}" y="{y + 4:.1f}" text-anchor="end">{escape(", ".join(names))}</text>'


def time_bar(parts: Sequence[tuple[Reason, float]], total: float) -> str:
    """Returns the SVG of a bar that is divided into the parts of a time.

    Args:
        parts: the reasons and microseconds of the parts.
        total: the microseconds of the whole bar.
    """
    return _svg("".join(_pieces(parts, total)), 22, "parts")


def _pieces(parts: Sequence[tuple[Reason, float]], total: float) -> Iterator[str]:
    x = 0.0
    for reason, us in parts:
        wide = WIDTH * us / total
        about = f' data-p="{reason.place.line}"' if reason.place is not None else ""
        faint = ' opacity="0.3"' if reason.kind not in WORK else ""
        yield (f'<rect x="{x:.2f}" y="2" width="{wide:.2f}" height="18" fill="{COLOURS[reason.pipe]}"{faint}{about}>'
               f"<title>{escape(str(reason))}, {us:.3f} us</title></rect>")
        x += wide
