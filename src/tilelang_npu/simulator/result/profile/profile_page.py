"""The HTML page of a profile, which ``run FILE --html OUT`` and ``profile.save_html(file)`` write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from tilelang_npu.charts import STYLE
from tilelang_npu.errors import TileError
from tilelang_npu.html_sheet import document, source
from tilelang_npu.simulator.result.profile import svg_charts
from tilelang_npu.simulator.result.profile.core_balance import core_balance
from tilelang_npu.simulator.result.profile.hivm_listing import NO_TIME, hivm_listing, time_margin
from tilelang_npu.simulator.result.profile.moved_bytes import argument_names
from tilelang_npu.simulator.result.profile.profile_text import GENERATED_NOTE

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.profile.launch_profile import Profile

_STYLE = """
main > div + div { padding: 4px 20px 40px }
section { max-width: 1200px }
h2 { font-size: 15px; margin: 26px 0 8px; border-bottom: 1px solid var(--line) }
h2.k { font-size: 17px; border-bottom: 2px solid var(--ink) }
h3 { font-size: 13px; margin: 14px 0 4px; color: var(--dim) }
svg { width: 100%; display: block }
label { margin-right: 1em; cursor: pointer }
path.flow { display: none; stroke: var(--ink); opacity: .6; fill: none }
path.flow:hover { stroke: var(--hot); opacity: 1 }
section:has(.flows:checked) path.flow { display: inline }
.hivm { display: none }
body:has(#hivm:checked) .report { display: none }
body:has(#hivm:checked) .hivm { display: block }
""" + STYLE + """svg.parts { height: 22px }
rect.on { stroke: var(--ink); stroke-width: 2 }
.wide { overflow-x: auto }
.wide svg { width: var(--zoom, 100%) }
@media (max-width: 720px) {
  .wide svg, section > svg:not(.parts) { min-width: 640px } figure { width: 100% } section { overflow-x: auto }
  td, th { padding-right: 8px } td.w { width: 160px } li pre { white-space: pre-wrap; width: auto } }
@media print { section { break-inside: avoid } .wide { overflow: visible } .wide svg { width: 100% } input { display: none } }
table { border-collapse: collapse; font-size: 13px }
td, th { padding: 1px 14px 1px 0; text-align: left; vertical-align: top }
td.r, th.r { text-align: right; font-variant-numeric: tabular-nums }
td.w { width: 420px }
td.r, th.r, td.p { white-space: nowrap }
tr.on td { background: var(--on) }
ol { padding-left: 1.4em; margin: 4px 0 }
figure { display: inline-block; width: 320px; margin: 0 20px 12px 0; vertical-align: top; font-size: 12px }
.key span { display: inline-block; margin-right: 12px }
.key i { display: inline-block; width: 10px; height: 10px; margin-right: 4px }
.h { display: inline-block; width: 8.4em; text-align: right; margin-right: 1em; color: var(--dim); font-size: 11px;
  background: linear-gradient(var(--hot), var(--hot)) no-repeat; background-size: calc(var(--part, 0%) * 0.36) 100% }
"""
_SCRIPT = """
document.querySelectorAll('input[type=range]').forEach(e => e.oninput = () =>
  e.closest('section').style.setProperty('--zoom', e.value + '%'));
document.documentElement.dataset.ready = 'yes';
"""
_CHOICE = ('<p><label><input type="radio" name="view" checked> profile</label>'
           '<label><input type="radio" name="view" id="hivm"> HIVM with the time of each operation</label></p>')
_NO_SOURCE = "# The script cannot be read here.\n"


def page(profiles: Sequence[Profile], labels: Sequence[str] = ()) -> str:
    """Returns a self-contained HTML page with the profiles of one or several kernels, one after the other.

    Args:
        profiles: the profiles, of kernels in one source file; at least one. The page shows that file with the time of each
            line.
        labels: the heading of each profile; by default the names of the kernels.
    """
    first = profiles[0]
    names = labels or [one.kernel for one in profiles]
    file = next((line.place.file for one in profiles for line in one.lines if line.place is not None), "")
    path = Path(file)
    text = path.read_text(encoding="utf-8") if file and path.is_file() else _NO_SOURCE
    heat = _heat(profiles, file)
    title = first.kernel if len(profiles) == 1 else path.name
    times = ", ".join(f"{escape(name)} on {escape(one.chip)}: {one.time_us:.2f} us"
                      for name, one in zip(names, profiles, strict=True))
    lead = f"{times}, modelled. Point at a line to see where it runs, click to go there."
    body = _CHOICE + "".join(_profile(one, name if len(profiles) > 1 else "", file)
                             for name, one in zip(names, profiles, strict=True))
    listing = source(text, lambda number: heat.get(number, NO_TIME))
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
    return {number: time_margin(us, total) for number, us in times.items()}


def _profile(one: Profile, name: str, file: str) -> str:
    """Returns the HTML of a profile.

    Args:
        one: the profile.
        name: the heading; empty for none.
        file: the source file of the page.
    """
    head = f'<h2 class="k">{escape(name)}: {one.time_us:.2f} us, {one.launch.blocks} blocks</h2>' if name else ""
    sections = {
        "What to change, largest gain first": "".join(_advice(one)),
        "Causes of lost time, with the time without each": "".join(_causes(one)),
        f"Critical path of {one.time_us:.2f} us": _path(one),
        "All cores and waves": "".join(_cores(one)),
        "Timeline of a block": "".join(_timelines(one)),
        "Memory by time": "".join(_memories(one)),
        "Roofline": svg_charts.roof(one.roofline),
        "Pipes, on average over the cores": _pipes(one),
        "What if": _table(("", "us", "", ""), ((row.change, f"{row.after:.2f}", f"{_percent(-row.gain)} %", "")
                                               for row in one.what_if)),
        "Bytes": _bytes(one),
        "Tensors": "".join(_tensors(one)),
    }
    note = f"<p>This launch ran {escape(GENERATED_NOTE)}.</p>" if one.is_of_generated_inputs else ""
    report = note + "".join(f"<section><h2>{escape(title)}</h2>{body}</section>" for title, body in sections.items())
    return f'{head}<div class="report">{report}</div><div class="hivm">{"".join(_hivm(one, file))}</div>'


def _hivm(one: Profile, file: str) -> Iterator[str]:
    for launch, parts in zip(one.launch.parts, one.parts, strict=True):
        block = max(parts.blocks, key=lambda block: block.group.timing.cycles)
        yield f"<h3>{escape(launch.name)}, block {block.group.run.block}: us on a pipe of a core, or held by a wait</h3>"
        yield hivm_listing(launch, block, file)


def _percent(share: float) -> str:
    """Returns a signed share in percent with one decimal; what rounds to zero has no sign."""
    text = f"{100 * share:+.1f}"
    return "0.0" if float(text) == 0 else text


def _advice(one: Profile) -> Iterator[str]:
    if not one.advice:
        yield f"<p>{escape(one.tried.note)}</p>"
        return
    yield "<ol>"
    for row in one.advice:
        _, *changes = str(row).splitlines()
        about = f' data-p="{row.changes[0].line}"' if row.changes else ""
        lines = "\n".join(line.strip(" ") if line.startswith("    ") else line for line in changes)
        yield f"<li{about}>{escape(row.edit)}<br><b>{escape(row.times)}</b><pre>{escape(lines)}</pre></li>"
    yield "</ol>"


def _causes(one: Profile) -> Iterator[str]:
    if not one.unrefuted_causes:
        yield "<p>None.</p>"
        return
    yield "<ol>"
    for row in one.unrefuted_causes:
        about = f' data-p="{row.place.line}"' if row.place is not None else ""
        yield f"<li{about}>{escape(row.problem)}<br><b>{escape(row.times)}</b></li>"
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
    yield ' zoom <input type="range" min="100" max="2000" value="100" aria-label="zoom">'
    yield ' <label><input type="checkbox" class="flows"> lines from sets to waits</label></p>'
    for launch, parts in zip(one.launch.parts, one.parts, strict=True):
        block = max(parts.blocks, key=lambda block: block.group.timing.cycles)
        yield f"<h3>{escape(launch.name)}, block {block.group.run.block}; {block.group.count} are alike</h3>"
        yield f'<div class="wide">{svg_charts.timeline(launch, block, flows=True)}</div>'


def _memories(one: Profile) -> Iterator[str]:
    for launch, parts in zip(one.launch.parts, one.parts, strict=True):
        block = max(parts.blocks, key=lambda block: block.group.timing.cycles)
        yield svg_charts.traffic(launch, block) + svg_charts.memory(launch, block)


def _pipes(one: Profile) -> str:
    rows = []
    for row in one.pipes:
        bar = svg_charts.time_bar([(part.reason, part.us) for part in row.parts], one.time_us)
        rows.append(f'<tr><td class="p">{row.core} {row.pipe}</td><td class="r">{100 * row.busy_us / one.time_us:.1f} %</td>'
                    f'<td class="w">{bar}</td><td>{escape(str(row.stalls[0].reason)) if row.stalls else ""}</td></tr>')
    return f'<table><tr><th></th><th class="r">busy</th><th></th><th>mostly</th></tr>{"".join(rows)}</table>'


def _bytes(one: Profile) -> str:
    paths = _table(("path", "used", "moved", "GB/s", "at most"),
                   ((row.path, f"{row.used:,}", f"{row.moved:,}", f"{row.rate:.1f}", f"{row.peak:.0f}") for row in one.paths))
    arguments = _table(("argument", "used", "moved", "HBM", "needed"),
                       ((f"{row.name} {'written' if row.written else 'read'}", f"{row.used:,}", f"{row.moved:,}",
                         f"{row.hbm:,}", f"{row.needed:,}") for row in one.arguments))
    return paths + "<h3></h3>" + arguments


def _tensors(one: Profile) -> Iterator[str]:
    for launch in one.launch.parts:
        names = argument_names(launch)
        shown = []
        for buffer, written in sorted(launch.moved):
            with suppress(TileError):  # too large a tensor
                shown.append(launch.access_map(names[buffer], written=written, block=launch.recorded.blocks[0].block))
        framed = f"the elements of block {launch.recorded.blocks[0].block} have a frame"
        yield f"<h3>{escape(launch.name)}: darker elements are accessed more often; {framed}</h3>"
        yield "".join(f'<figure>{found.svg()}<figcaption>{escape(str(found))}</figcaption></figure>' for found in shown)


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
