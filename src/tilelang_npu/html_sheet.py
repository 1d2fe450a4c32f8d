"""Writes self-contained HTML pages that show a Python script on the left and a report about the script on the right.

A page loads no other file. An HTML element that belongs to a line of the script has the line's number in its attribute
``data-p``, after a prefix if the page shows several files. Pointing at such an element highlights all elements with the number.
A click on a line of the script scrolls to the first of these elements in the report, and a click in the report scrolls to the
line of the script.
"""

from __future__ import annotations

import html
from collections.abc import Callable

__all__ = ["document", "page", "row", "source"]

_STYLE = """
:root { --ink: #1c2128; --dim: #6e7781; --line: #d8dee4; --page: #ffffff; --bar: #f6f8fa;
  --new: #dafbe1; --old: #ffebe9; --on: #fff8c5; --hot: #f0883e }
@media (prefers-color-scheme: dark) { :root { --ink: #dce3ea; --dim: #8b949e; --line: #30363d; --page: #0d1117;
  --bar: #161b22; --new: #12361f; --old: #43191d; --on: #4b3f12; --hot: #bd561d } }
* { box-sizing: border-box }
body { margin: 0; color: var(--ink); background: var(--page); font: 14px/1.5 system-ui, sans-serif; height: 100vh;
  display: flex; flex-direction: column }
header { padding: 12px 20px; border-bottom: 1px solid var(--line) }
h1 { font-size: 17px; margin: 0 }
header p { margin: 2px 0; color: var(--dim) }
main { display: grid; grid-template-columns: minmax(260px, 34%) 1fr; flex: 1; min-height: 0 }
main > div { overflow: auto; min-width: 0 }
#python { border-right: 1px solid var(--line); background: var(--bar) }
pre { margin: 0; font: 12px/1.55 ui-monospace, monospace; tab-size: 4; width: max-content; min-width: 100% }
.l { display: block; padding: 0 14px }
.n { display: inline-block; width: 3em; color: var(--dim); user-select: none }
.l.on { background: var(--on) }
@media (max-width: 720px) {
  body { height: auto } main { display: block } main > div { overflow-x: auto } #python { max-height: 40vh; border-right: 0;
    border-bottom: 1px solid var(--line) } header { padding: 10px 12px } }
@media print { :root { --ink: #000; --dim: #555; --line: #bbb; --page: #fff; --bar: #fff } body { height: auto; display: block }
  main { display: block } main > div { overflow: visible } #python { border: 0 } * { print-color-adjust: exact } }
"""
_SCRIPT = """
const mark = (line, on) => document.querySelectorAll('[data-p="' + line + '"]').forEach(e => e.classList.toggle('on', on));
document.querySelectorAll('[data-p]').forEach(e => {
  e.onmouseenter = () => mark(e.dataset.p, true); e.onmouseleave = () => mark(e.dataset.p, false);
  e.onclick = () => { const own = e.closest('#python'); const to = own
    ? [...document.querySelectorAll('main > div:not(#python) [data-p="' + e.dataset.p + '"]')].find(o => o.checkVisibility())
    : document.querySelector('#python [data-p="' + e.dataset.p + '"]'); if (to) to.scrollIntoView({block: 'center'}); };
});
"""


def page(title: str, style: str, body: str, *, script: str = "") -> str:
    """Returns a self-contained HTML page. Its content policy forbids the browser to load other files.

    Args:
        title: the text of the browser's title; escaped here.
        style: CSS rules.
        body: the HTML of the body.
        script: JavaScript at the end of the body; without it, the policy also forbids scripts.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'" + ("; script-src 'unsafe-inline'" if script else "")
    code = f"<script>{script}</script>" if script else ""
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>{html.escape(title)}</title>'
            f"<style>{style}</style></head><body>{body}{code}</body></html>\n")


def document(title: str, about: str, text: str, body: str, style: str = "", script: str = "") -> str:
    """Returns an HTML page with a script's source on the left and a report on the right.

    Args:
        title: the heading.
        about: the kind of report; the browser's title is ``TITLE: ABOUT``.
        text: the HTML of the source, which :func:`source` returns.
        body: HTML: the first line is shown below the heading, the rest is the report.
        style: CSS rules to add to those of all pages.
        script: JavaScript to add to that of all pages.
    """
    lead, _, rest = body.partition("\n")
    return page(f"{title}: {about}", _STYLE + style,
                f"<header><h1>{html.escape(title)}</h1><p>{lead}</p></header>"
                f'<main><div id="python"><pre>{text}</pre></div><div>{rest}</div></main>', script=_SCRIPT + script)


def source(text: str, before_number: Callable[[int], str] = lambda number: "", prefix: str = "") -> str:
    """Returns the HTML of a script's lines, with their numbers.

    Args:
        text: the script.
        before_number: a function of a line's number that returns the HTML to put before the number.
        prefix: the text before the number in the key of a line, which tells the lines of several files apart.
    """
    return "".join(row("", f'{before_number(number)}<span class="n">{number}</span>{html.escape(line)}', f"{prefix}{number}")
                   for number, line in enumerate(text.splitlines(), 1))


def row(kind: str, shown: str, place: int | str | None) -> str:
    """Returns the HTML of one line of a listing.

    Args:
        kind: the CSS class of the line, besides ``l``; empty for none.
        shown: the line's content, as HTML.
        place: the number, or the key, of the script's line that the listing's line belongs to; None if it belongs to none.
    """
    about = "" if place is None else f' data-p="{place}"'
    return f'<span class="l{" " * bool(kind)}{kind}"{about}>{shown}</span>'
