"""The page of ``stages FILE --html``, which shows the changes that each pass made to a script's kernels next to the Python
source.
"""

from __future__ import annotations

import difflib
import html
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tilelang_npu.cli.selection import labels, parameters
from tilelang_npu.dialects.ir.remarks import DONE, REFUSED
from tilelang_npu.dialects.text.located_lines import located_lines
from tilelang_npu.html_sheet import document, row
from tilelang_npu.html_sheet import source as listing

if TYPE_CHECKING:
    from tilelang_npu.dialects.ir.remarks import Remark
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel

__all__ = ["page"]

_CONTEXT = 3
"""The number of unchanged lines around a change; other unchanged lines are folded."""
_STYLE = """
details { border-bottom: 1px solid var(--line) }
summary { padding: 7px 14px; cursor: pointer; position: sticky; top: 0; left: 0; background: var(--bar) }
summary span { color: var(--dim); margin-left: 8px }
.k > summary { position: static; font-size: 15px }
.k > details { margin-left: 14px }
.a { background: var(--new) }
.d { background: var(--old) }
.f { color: var(--dim); background: var(--bar) }
.s { color: var(--dim); font-style: italic }
details.same { display: none }
body:has(#same:checked) details.same { display: block }
label { display: block; padding: 7px 14px }
.f.b { margin-top: 1em; font-weight: 600 }
"""


def page(kernels: Sequence[JITKernel], source: Path) -> str:
    """Returns the self-contained HTML page.

    Passes that change nothing and did or refused no optimisation are hidden until the reader asks for them.

    Args:
        kernels: the kernels. If there are several, each has a section, of which the first is expanded.
        source: the script that was run. The page shows the files that have the kernels, which the script may import.
    """
    sources = _Sources(kernels, source)
    parts = [_kernel(kernel, sources) for kernel in kernels]
    title = kernels[0].name if len(kernels) == 1 else source.name
    if len(kernels) == 1:
        about, shown = parts[0]
    else:
        about = f"{len(kernels)} kernels"
        shown = "".join(
            f'<details class="k"{" open" if number == 0 else ""}><summary><strong>{html.escape(name)}</strong>'
            f"<span>{html.escape(parameters(kernel))}; {about}</span></summary>{stages}</details>"
            for number, (name, kernel, (about, stages)) in enumerate(zip(labels(kernels), kernels, parts, strict=True)))
    choice = '<label><input type="checkbox" id="same"> show passes that change nothing</label>'
    names = html.escape(", ".join(sources.names))
    lead = f"{names}, {about}. Point at a line to see where it comes from, click to go there."
    return document(title, "stages", sources.listing(), f"{lead}\n{choice}{shown}", _STYLE)


class _Sources:
    """The files that have kernels, which a page shows one after the other.

    Args:
        kernels: the kernels.
        script: the script that was run; it is shown if no file of a kernel can be read.
    """

    def __init__(self, kernels: Sequence[JITKernel], script: Path) -> None:
        own = [Path(kernel.prim_func.function.__code__.co_filename) for kernel in kernels]
        found = dict.fromkeys(path.resolve() for path in own if path.is_file())
        self._files = list(found) or [script.resolve()]
        self._places = {path: place for place, path in enumerate(self._files)}

    @property
    def names(self) -> list[str]:
        """The name of each file."""
        return [path.name for path in self._files]

    def key(self, file: str, line: int) -> str | None:
        """Returns the key of a line in the listing (``row`` of :mod:`tilelang_npu.html_sheet`); None for a line of another
        file."""
        place = self._places.get(Path(file).resolve())
        return None if place is None else f"{place}.{line}" if place else str(line)

    def listing(self) -> str:
        """Returns the HTML of the files' lines; if there are several files, each below its name."""
        parts = []
        for place, path in enumerate(self._files):
            if len(self._files) > 1:
                parts.append(row("f b", html.escape(path.name), None))
            parts.append(listing(path.read_text(encoding="utf-8"), prefix=f"{place}." if place else ""))
        return "".join(parts)


def _kernel(kernel: JITKernel, sources: _Sources) -> tuple[str, str]:
    """Returns the HTML of a kernel's summary line and of its stages."""
    stages = [(name, list(_lines(kernel.mlir(name, locations=True), sources))) for name in kernel.stages()]
    shown = [_first(*stages[0])]
    remarks = [one for one in dict.fromkeys(kernel.explain().remarks) if one.text]
    for (_, before), (name, after) in zip(stages, stages[1:], strict=False):
        shown.append(_change(name, before, after, [one for one in remarks if one.maker == name], sources))
    changed = sum("<details open>" in part for part in shown[1:])
    return f"{html.escape(kernel.chip.name)}: {len(stages) - 1} passes, {changed} of which change it", "".join(shown)


_Line = tuple[str, "str | None"]
"""A line of MLIR without its location, and the key of its line in the listing."""


def _lines(text: str, sources: _Sources) -> Iterator[_Line]:
    """Yields the lines of an MLIR text without the locations, each with the key of its line in the listing."""
    for line in located_lines(text):
        yield line.text, sources.key(line.file, line.line) if line.file else None


def _remark_html(one: Remark, sources: _Sources) -> str:
    """Returns the HTML of a remark of a pass, linked to the source line that the remark is about."""
    where = f"{one.place.line_with_calls}: " if one.place is not None else ""
    edit = f"; to have it: {one.edit}" if one.edit else ""
    about = f"{one.about} " if one.about != one.maker else ""
    text = f"{about}{one.kind}, {where}{one.text}{edit}"
    return _row("s", "#", (text, sources.key(one.place.file, one.place.line) if one.place is not None else None))


def _row(kind: str, sign: str, line: _Line) -> str:
    return row(kind, f"{sign} {html.escape(line[0])}", line[1])


def _first(name: str, lines: list[_Line]) -> str:
    rows = "".join(_row("", " ", line) for line in lines)
    return (f"<details><summary><b>{name}</b><span>as traced, {len(lines)} lines</span></summary>"
            f"<section><pre>{rows}</pre></section></details>")


def _change(name: str, before: list[_Line], after: list[_Line], remarks: Sequence[Remark], sources: _Sources) -> str:
    """Returns the HTML with the remarks of a pass, and the lines of the module that the pass removed and added."""
    matcher = difflib.SequenceMatcher(None, [text for text, _ in before], [text for text, _ in after], autojunk=False)
    rows: list[str] = []
    added = removed = end = 0
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        if group[0][1] > end:
            rows.append(_row("f", "", (f"... {group[0][1] - end} lines", None)))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                rows += [_row("", " ", line) for line in after[j1:j2]]
                continue
            rows += [_row("d", "-", line) for line in before[i1:i2]]
            rows += [_row("a", "+", line) for line in after[j1:j2]]
            removed, added = removed + i2 - i1, added + j2 - j1
        end = group[-1][2]
    counts = Counter(one.kind for one in remarks)
    counted = "".join(f", {counts[kind]} {kind}" for kind in (DONE, REFUSED) if counts[kind])
    remarks_html = "".join(_remark_html(one, sources) for one in remarks)
    if not rows:
        shown = f"<section><pre>{remarks_html}</pre></section>" if remarks_html else ""
        kind = "" if remarks_html else ' class="same"'
        return f"<details{kind}><summary><b>{name}</b><span>changes nothing{counted}</span></summary>{shown}</details>"
    return (f"<details open><summary><b>{name}</b><span>+{added} -{removed}, {len(after)} lines{counted}</span></summary>"
            f"<section><pre>{remarks_html}{''.join(rows)}</pre></section></details>")
