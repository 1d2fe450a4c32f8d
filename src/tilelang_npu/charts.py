"""Draws charts of curves and of bars as SVG text, and wraps SVG drawings of other modules. Notebooks display the results.

The colours are readable on light and on dark pages, and an SVG refers to no other file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log2, log10
from pathlib import Path

__all__ = ["COLOURS", "STYLE", "Bar", "Curve", "Picture", "bars", "curves", "picture", "ticks"]

COLOURS = ("#3b7dd8", "#d1782b", "#3fa45b", "#9b6fd0", "#cf5b5b", "#8a8f98")
"""The default colours (CSS hexadecimal): curve number ``i`` of a chart gets ``COLOURS[i % len(COLOURS)]``."""
STYLE = """svg text { font: 11px system-ui, sans-serif; fill: var(--dim) }
svg text.t { text-anchor: middle }
svg .grid path, svg path.grid { stroke: var(--line); fill: none }
svg .area { fill: #4e79d8; opacity: .75 }
svg .rule { stroke: var(--dim) }
svg .roof { stroke: var(--ink); stroke-width: 2; fill: none }
svg .fall { stroke: var(--hot); stroke-dasharray: 4; fill: none }
svg circle { fill: var(--hot) }
svg circle.before { fill: var(--ink) }
"""
"""The CSS rules of all charts. They use colour variables (``--dim``, ``--line``, ``--ink``, ``--hot``) of the surrounding HTML
page; :func:`picture` replaces the variables by fixed colours.
"""
_ALONE = {"--dim": "#7d8590", "--line": "#8a8f9855", "--ink": "#8a8f98", "--hot": "#e0663a"}
_WIDTH, _LEFT, _RIGHT, _TOP, _HIGH = 720, 66, 16, 34, 260
_ROW = 22


class Picture(str):
    """The text of an SVG image, which notebooks display as the image."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)

    def save(self, file: str | Path) -> None:
        """Writes the SVG text to a file.

        Args:
            file: the path of the file; an existing file is overwritten.
        """
        Path(file).write_text(str(self), encoding="utf-8")


def picture(drawn: str, title: str = "") -> Picture:
    """Returns a drawing as a self-contained SVG image that includes the rules of :data:`STYLE` with fixed colours.

    Args:
        drawn: the text of an ``<svg>`` element with a ``class`` attribute; its parts have the CSS classes of :data:`STYLE`.
        title: the image's ``<title>``, which browsers show as a tooltip; empty for none.
    """
    rules = STYLE
    for name, colour in _ALONE.items():
        rules = rules.replace(f"var({name})", colour)
    head, _, body = drawn.partition(">")
    head = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" style="max-width:1000px;width:100%" ', 1)
    named = f"<title>{escape(title)}</title>" if title else ""
    # style rules inside an SVG apply to the whole page, so these name a class that other elements do not have
    scoped = "".join(f"{_scoped(line)}\n" for line in rules.splitlines())
    return Picture(head.replace('class="', 'class="tilelang-npu ', 1) + f">{named}<style>{scoped}</style>{body}")


def _scoped(rule: str) -> str:
    selectors, _, rest = rule.partition("{")
    return ", ".join(one.strip().replace("svg", "svg.tilelang-npu", 1) for one in selectors.split(",")) + " {" + rest


# -- curves ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """A curve of a chart.

    Attributes:
        label: the text in the legend.
        points: the ``(x, y)`` points, from left to right.
        spread: for each point the lowest and the highest ``y`` of its error bar; empty for a curve without error bars.
        colour: a CSS colour; empty for the default colour, see :data:`COLOURS`.
        dashed: whether the line is dashed.
    """

    label: str
    points: Sequence[tuple[float, float]]
    spread: Sequence[tuple[float, float]] = ()
    colour: str = ""
    dashed: bool = False


@dataclass(frozen=True)
class _Axis:
    """Values between two ends, on a linear or a logarithmic scale."""

    low: float
    high: float
    by_powers: bool

    def at(self, value: float) -> float:
        """Returns the position of a value on the axis, from 0 (``low``) to 1 (``high``)."""
        low, high, here = (log10(end) if self.by_powers else end for end in (self.low, self.high, value))
        return (here - low) / (high - low)


def ticks(low: float, high: float, *, by_powers: bool = False, most: int = 7) -> list[float]:
    """Returns the round numbers between ``low`` and ``high`` at which an axis has ticks, in ascending order.

    Args:
        low, high: the ends of the axis.
        by_powers: whether the axis is logarithmic. The ticks are then powers of two if ``high`` is at most ``2**most`` times
            ``low``, else powers of ten. On a linear axis, the distance of ticks is 1, 2 or 5 times a power of ten.
        most: about how many ticks there may be.
    """
    if by_powers:
        base = 2.0 if high / low <= 2.0**most else 10.0
        size = log2 if base == 2.0 else log10
        return [base**power for power in range(ceil(size(low) - 1e-9), floor(size(high) + 1e-9) + 1)]
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    step = next(number * power for number in (1, 2, 5, 10) if number * power >= rough * (1 - 1e-9))
    return [number * step for number in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _axis(values: Sequence[float], *, by_powers: bool, from_zero: bool) -> _Axis:
    low, high = min(values), max(values)
    if by_powers:
        return _Axis(low / 2, high * 2, True) if low == high else _Axis(low, high, True)
    low = min(0.0, low) if from_zero else low
    if low == high:
        low, high = low - 1, high + 1
    return _Axis(low, high, False)


def curves(drawn: Sequence[Curve], *, title: str = "", x: str = "", y: str = "", log_x: bool = False,
           log_y: bool = False, x_ticks: Mapping[float, str] | None = None) -> Picture:
    """Returns a line chart in which all curves share one x axis and one y axis.

    Args:
        drawn: the curves, each with at least one point.
        title: the title above the chart.
        x, y: the labels of the axes.
        log_x, log_y: whether the axis is logarithmic; the coordinates must then be positive.
        x_ticks: the text of each tick of the x axis, for places that have names rather than numbers; None for round numbers.

    Raises:
        ValueError: no curve has a point, or a coordinate on a logarithmic axis is not positive.
    """
    every = [point for curve in drawn for point in curve.points]
    ends = [end for curve in drawn for pair in curve.spread for end in pair]
    heights = [height for _, height in every] + ends
    if not every:
        msg = "there is nothing to draw"
        raise ValueError(msg)
    if (log_x and min(place for place, _ in every) <= 0) or (log_y and min(heights) <= 0):
        msg = "a logarithmic axis needs positive values"
        raise ValueError(msg)
    across = _axis([place for place, _ in every], by_powers=log_x, from_zero=False)
    top = max(heights)
    up = _axis([*heights, top * 1.05 if top > 0 else top], by_powers=log_y, from_zero=True)

    def right(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * across.at(value)

    def down(value: float) -> float:
        return _TOP + _HIGH * (1 - up.at(value))

    parts = [f'<text x="{_LEFT}" y="16" style="font-weight:bold">{escape(title)}</text>'] if title else []
    names = {tick: _shown(tick) for tick in ticks(across.low, across.high, by_powers=log_x)} if x_ticks is None else x_ticks
    for tick, name in names.items():
        parts.append(f'<path class="grid" d="M{right(tick):.1f} {_TOP}V{_TOP + _HIGH}"/>'
                     f'<text x="{right(tick):.1f}" y="{_TOP + _HIGH + 16}" class="t">{escape(name)}</text>')
    for tick in ticks(up.low, up.high, by_powers=log_y):
        parts.append(f'<path class="grid" d="M{_LEFT} {down(tick):.1f}H{_WIDTH - _RIGHT}"/>'
                     f'<text x="{_LEFT - 8}" y="{down(tick) + 4:.1f}" text-anchor="end">{_shown(tick)}</text>')
    parts.append(f'<text x="{_WIDTH - _RIGHT}" y="{_TOP + _HIGH + 34}" text-anchor="end">{escape(x)}</text>'
                 f'<text x="{_LEFT - 8}" y="{_TOP - 6}" text-anchor="end">{escape(y)}</text>')
    for number, curve in enumerate(drawn):
        colour = _colour(curve, number)
        for (place, _), (low, high) in zip(curve.points, curve.spread, strict=False):
            parts.append(f'<path d="M{right(place):.1f} {down(low):.1f}V{down(high):.1f}" stroke="{colour}" opacity="0.55"/>')
        line = "L".join(f"{right(place):.1f} {down(height):.1f}" for place, height in curve.points)
        dashes = ' stroke-dasharray="6 4"' if curve.dashed else ""
        parts.append(f'<path d="M{line}" stroke="{colour}" stroke-width="2" fill="none"{dashes}/>')
        parts += [f'<rect x="{right(place) - 3:.1f}" y="{down(height) - 3:.1f}" width="6" height="6" rx="3" fill="{colour}">'
                  f"<title>{escape(curve.label)}: {_shown(place)}, {height:g}</title></rect>" for place, height in curve.points]
    below = _TOP + _HIGH + 46
    for number, curve in enumerate(drawn):
        y_ = below + _ROW * (number // 3) + 10
        x_ = _LEFT + (_WIDTH - _LEFT) / 3 * (number % 3)
        parts.append(f'<rect x="{x_:.0f}" y="{y_ - 9}" width="10" height="10" fill="{_colour(curve, number)}"/>'
                     f'<text x="{x_ + 15:.0f}" y="{y_}">{escape(curve.label)}</text>')
    high = below + _ROW * ceil(len(drawn) / 3) + 4
    return _framed("curves", _WIDTH, high, title, parts)


def _colour(curve: Curve, number: int) -> str:
    return escape(curve.colour, quote=True) or COLOURS[number % len(COLOURS)]


def _shown(value: float) -> str:
    """Returns the number of a tick as its shortest text."""
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e7 else f"{value:g}"


# -- bars --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """A row of a bar chart.

    Attributes:
        label: the text to the left of the bar.
        value: the bar's length, in any unit that is the same for all rows; None for a row of text without a bar.
        note: the text to the right of the bar.
    """

    label: str
    value: float | None
    note: str = ""


def bars(rows: Sequence[Bar], *, title: str = "") -> Picture:
    """Returns a chart of horizontal bars, one below the other. The first bar has another colour than the rest.

    Args:
        rows: the rows, from top to bottom; the longest bar fills the width.
        title: the title above the bars.
    """
    longest = max((row.value for row in rows if row.value is not None), default=0.0) or 1.0
    label = 8 + 7 * max((len(row.label) for row in rows), default=0)
    note = 12 + 7 * max((len(row.note) for row in rows), default=0)
    wide = max(_WIDTH, label + note + 160)
    top = 26 if title else 4
    parts = [f'<text x="0" y="14" style="font-weight:bold">{escape(title)}</text>'] if title else []
    for number, row in enumerate(rows):
        y = top + _ROW * number
        length = 0.0 if row.value is None else (wide - label - note) * row.value / longest
        if row.value is not None:
            parts.append(f'<rect x="{label}" y="{y + 3}" width="{max(length, 1):.1f}" height="{_ROW - 7}" '
                         f'fill="{COLOURS[0 if number == 0 else -1]}"/>')
        parts.append(f'<text x="0" y="{y + 15}">{escape(row.label)}</text>'
                     f'<text x="{label + length + 6:.1f}" y="{y + 15}">{escape(row.note)}</text>')
    high = top + _ROW * len(rows) + 4
    return _framed("bars", wide, high, title, parts)


def _framed(kind: str, wide: int, high: int, title: str, parts: Sequence[str]) -> Picture:
    head = f'<svg class="{kind}" viewBox="0 0 {wide} {high}" role="img" aria-label="{escape(title)}">'
    return picture(f"{head}{''.join(parts)}</svg>")
