"""The HTML page of a profile, which ``run FILE --html OUT`` and ``profile.save_html(file)`` write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from tilelang_npu.charts import STYLE
from tilelang_npu.html_sheet import document, source
from tilelang_npu.simulator.result.profile import svg_charts
from tilelang_npu.simulator.result.profile.core_balance import core_balance

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.profile.launch_profile import Profile

_STYLE = """
main > div + div { padding: 4px 20px 40px }
section { max-width: 1200px }
h2 { font-size: 15px; margin: 26px 0 8px; border-bottom: 1px solid var(--line) }
h2.k { font-size: 17px; border-bottom: 2px solid var(--ink) }
h3 { font-size: 13px; margin: 14px 0 4px; color: var(--dim) }
svg { width: 100%; display: block }
""" + STYLE + """svg.parts { height: 22px }
rect.on { stroke: var(--ink); stroke-width: 2 }
.wide { overflow-x: auto }
.wide svg { width: var(--zoom, 100%) }
@media (max-width: 720px) {
  .wide svg, section > svg { min-width: 640px } section { overflow-x: auto }
  td, th { padding-right: 8px } td.w { width: 160px } li pre { white-space: pre-wrap; width: auto } }
@media print { section { break-inside: avoid } .wide { overflow: visible } .wide svg { width: 100% } input { display: none } }
table { border-collapse: collapse; font-size: 13px }
td, th { padding: 1px 14px 1px 0; text-align: left; vertical-align: top }
td.r, th.r { text-align: right; font-variant-numeric: tabular-nums }
td.w { width: 420px }
tr.on td { background: var(--on) }
ol { padding-left: 1.4em; margin: 4px 0 }
.key span { display: inline-block; margin-right: 12px }
.key i { display: inline-block; width: 10px; height: 10px; margin-right: 4px }
.h { display: inline-block; width: 5.4em; text-align: right; margin-right: 1em; color: var(--dim); font-size: 11px;
  background-repeat: no-repeat; background-image: linear-gradient(var(--hot), var(--hot)) }
"""
_SCRIPT = """
document.querySelectorAll('input[type=range]').forEach(e => e.oninput = () =>
  e.closest('section').style.setProperty('--zoom', e.value + '%'));
document.documentElement.dataset.ready = 'yes';
"""
_NO_SOURCE = "# The script cannot be read here.\n"


def page(profiles: Sequence[Profile]) -> str:
    """Returns a self-contained HTML page with the profiles of one or several kernels, one after the other.

    Args:
        profiles: the profiles, of kernels in one source file; at least one. The page shows that file with the time of each
            line.
    """
    first = profiles[0]
    file = next((line.place.file for one in profiles for line in one.lines if line.place is not None), "")
    path = Path(file)
    text = path.read_text(encoding="utf-8") if file and path.is_file() else _NO_SOURCE
    heat = _heat(profiles, file)
    title = first.kernel if len(profiles) == 1 else path.name
    said = ", ".join(f"{escape(one.kernel)} on {escape(one.chip)}: {one.time_us:.2f} us" for one in profiles)
    lead = f"{said}, modelled. Point at a line to see where it runs, click to go there."
    body = "".join(_profile(one, several=len(profiles) > 1) for one in profiles)
    listing = source(text, lambda number: heat.get(number, '<span class="h"></span>'))
    return document(title, "profile", listing, f"{lead}\n{body}", _STYLE, _SCRIPT)


def _heat(profiles: Iterable[Profile], file: str) -> dict[int, str]:
    """Returns, for each line of a source file, the HTML of its microseconds on the critical path and of a bar, for the margin
    of the source."""
    times: dict[int, float] = {}
    total = 0.0
    for one in profiles:
        total += one.time_us
        for line in one.lines:
            if line.place is not None and line.place.file == file and line.us:
                times[line.place.line] = times.get(line.place.line, 0.0) + line.us
    return {number: f'<span class="h" style="background-size:{100 * us / total:.1f}% 100%">{us:.2f} us</span>'
            for number, us in times.items()}


def _profile(one: Profile, *, several: bool) -> str:
    head = f'<h2 class="k">{escape(one.kernel)}: {one.time_us:.2f} us, {one.launch.blocks} blocks</h2>' if several else ""
    sections = {
        "What to change, largest gain first": "".join(_advice(one)),
        "Causes of lost time, with the time without each": "".join(_causes(one)),
        f"Critical path of {one.time_us:.2f} us": _path(one),
        "All cores and waves": "".join(_cores(one)),
        "Timeline of a block": "".join(_timelines(one)),
        "Memory by time": "".join(_memories(one)),
        "Roofline": svg_charts.roof(one.roofline),
        "Pipes, on average over the cores": _pipes(one),
        "What if": _table(("", "us", "", ""), ((row.change, f"{row.after:.2f}", f"{-100 * row.gain:+.1f} %", "")
                                               for row in one.what_if)),
        "Bytes": _bytes(one),
    }
    return head + "".join(f"<section><h2>{escape(name)}</h2>{body}</section>" for name, body in sections.items())


def _advice(one: Profile) -> Iterator[str]:
    if not one.advice:
        yield f"<p>{escape(one.tried.note)}</p>"
        return
    yield "<ol>"
    for row in one.advice:
        head, *changes = str(row).splitlines()
        about = f' data-p="{row.changes[0].line}"' if row.changes else ""
        lines = "\n".join(line.strip(" ") if line.startswith("    ") else line for line in changes)
        yield f"<li{about}>{escape(head)}<pre>{escape(lines)}</pre></li>"
    yield "</ol>"


def _causes(one: Profile) -> Iterator[str]:
    if not one.causes:
        yield "<p>None.</p>"
        return
    yield "<ol>"
    for row in one.causes:
        about = f' data-p="{row.place.line}"' if row.place is not None else ""
        yield f"<li{about}>{escape(str(row))}</li>"
    yield "</ol>"


def _path(one: Profile) -> str:
    parts = [(part.reason, part.us) for part in one.critical_path]
    rows = ((str(reason), f"{us:.2f}", f"{100 * us / one.time_us:.1f} %", reason.place.line if reason.place else None)
            for reason, us in parts if us >= 0.005 * one.time_us)
    return svg_charts.time_bar(parts, one.time_us) + _table(("", "us", "", ""), rows)


def _cores(one: Profile) -> Iterator[str]:
    for launch in one.launch.parts:
        if launch.recorded.program.global_sync:
            yield f"<p>{escape(launch.name)}: all blocks run at once, and wait for each other.</p>"
            continue
        yield f"<h3>{escape(launch.name)}: {escape(str(core_balance(launch)))}</h3>"
        yield f'<div class="wide">{svg_charts.cores(launch)}</div>'


def _timelines(one: Profile) -> Iterator[str]:
    yield '<p class="key">' + "".join(f'<span><i style="background:{colour}"></i>{pipe}</span>'
                                      for pipe, colour in svg_charts.COLOURS.items() if pipe)
    yield ' zoom <input type="range" min="100" max="2000" value="100" aria-label="zoom"></p>'
    for launch, parts in zip(one.launch.parts, one.parts, strict=True):
        block = max(parts.blocks, key=lambda block: block.group.timing.cycles)
        yield f"<h3>{escape(launch.name)}, block {block.group.run.block}; {block.group.count} are alike</h3>"
        yield f'<div class="wide">{svg_charts.timeline(launch, block)}</div>'


def _memories(one: Profile) -> Iterator[str]:
    for launch, parts in zip(one.launch.parts, one.parts, strict=True):
        block = max(parts.blocks, key=lambda block: block.group.timing.cycles)
        yield svg_charts.traffic(launch, block) + svg_charts.memory(launch, block)


def _pipes(one: Profile) -> str:
    rows = []
    for row in one.pipes:
        bar = svg_charts.time_bar([(part.reason, part.us) for part in row.parts], one.time_us)
        rows.append(f'<tr><td>{row.core} {row.pipe}</td><td class="r">{100 * row.busy_us / one.time_us:.1f} %</td>'
                    f'<td class="w">{bar}</td><td>{escape(str(row.stalls[0].reason)) if row.stalls else ""}</td></tr>')
    return f'<table><tr><th></th><th class="r">busy</th><th></th><th>mostly</th></tr>{"".join(rows)}</table>'


def _bytes(one: Profile) -> str:
    paths = _table(("path", "used", "moved", "GB/s", "at most"),
                   ((row.path, f"{row.used:,}", f"{row.moved:,}", f"{row.rate:.1f}", f"{row.peak:.0f}") for row in one.paths))
    arguments = _table(("argument", "used", "moved", "HBM", "needed"),
                       ((f"{row.name} {'written' if row.written else 'read'}", f"{row.used:,}", f"{row.moved:,}",
                         f"{row.hbm:,}", f"{row.needed:,}") for row in one.arguments))
    return paths + "<h3></h3>" + arguments


def _table(heads: Sequence[str], rows: Iterable[Sequence[str | int | None]]) -> str:
    """Returns an HTML table with text in the first column and numbers in the others.

    Args:
        heads: the titles of the columns.
        rows: the cells of each row. If the last entry of a row is an int, it is not shown as a cell: it is the number of the
            source line that the row belongs to.
    """
    shown = "".join(f'<th class="r">{head}</th>' if number else f"<th>{head}</th>" for number, head in enumerate(heads))
    body = []
    for row in rows:
        about = f' data-p="{row[-1]}"' if isinstance(row[-1], int) else ""
        cells = "".join(f'<td class="r">{escape(cell)}</td>' if number else f"<td>{escape(cell)}</td>"
                        for number, cell in enumerate(row) if isinstance(cell, str))
        body.append(f"<tr{about}>{cells}</tr>")
    return f'<table><tr>{shown}</tr>{"".join(body)}</table>'
