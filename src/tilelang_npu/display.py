"""Colours the text of reports and of MLIR: as HTML with inline styles for notebooks, and with escape codes for terminals."""

from __future__ import annotations

import os
import re
from html import escape
from typing import TextIO

__all__ = ["Mlir", "Report", "painted", "report"]

_PRE = '<pre style="overflow-x:auto;line-height:1.35;font-size:0.85em;white-space:pre">{}</pre>'
_BLUE, _GREEN, _BROWN, _RED, _GREY = "#3b7dd8", "#2e8b57", "#b0692a", "#d0473d", "#8a8f98"
_MLIR = re.compile(
    r'(?P<comment>//[^\n]*)|(?P<text>"[^"\n]*")|(?P<value>[%@^][\w$.#-]+)|(?P<attribute>[#!][a-z]\w*(?:\.\w+)+|<(?:PIPE|EVENT)_\w+>)'
    r"|(?P<op>(?<![\w.])(?:[a-z]\w*\.)+[a-z]\w*(?![\w.])|(?<![\w.])(?:module|func|return)(?![\w.]))"
    r"|(?P<type>(?<![\w.])(?:memref|tensor|index|i\d+|b?f\d+)(?![\w.]))")
_MLIR_COLOURS = {"comment": _GREY, "text": _GREEN, "value": _BLUE, "attribute": _BROWN, "op": _RED, "type": _GREEN}
_REPORT = re.compile(
    r"(?P<wrong>\b[a-z]+\[[ST]\d{3}\]:?)|(?P<place>(?:[\w./-]+\.py|In\[\d+\]):\d+(?::\d+)?)|(?P<bar>\^+)|(?P<head>\A[^\n]+)")
_REPORT_COLOURS = {"wrong": _RED, "place": _BLUE, "bar": _RED}
_CODES = {"wrong": "1;31", "place": "36", "bar": "31"}


class Report:
    """Base class of reports. A report prints as plain text; notebooks show its file positions and error codes in colours."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return report(str(self))


class Mlir(str):
    """A string with the text of an MLIR module, which notebooks show with syntax colours."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return _coloured(self, _MLIR, _MLIR_COLOURS)


def report(text: str) -> str:
    """Returns the text of a report as HTML, with its heading in bold and its file positions and error codes in colours."""
    return _coloured(text, _REPORT, _REPORT_COLOURS)


def painted(text: str, stream: TextIO) -> str:
    """Returns the text of a report with the escape codes of terminal colours if ``stream`` can show them.

    The text is returned unchanged if ``stream`` is not a terminal, ``TERM`` is ``dumb``, or ``NO_COLOR`` is set.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return text
    return _REPORT.sub(  # the first line is not bold, as commands print a report below others
        lambda match: f"\x1b[{_CODES[str(match.lastgroup)]}m{match[0]}\x1b[0m" if match.lastgroup in _CODES else match[0], text)


def _coloured(text: str, tokens: re.Pattern[str], colours: dict[str, str]) -> str:
    parts, place = [], 0
    for match in tokens.finditer(text):
        colour = colours.get(str(match.lastgroup))
        style = f"color:{colour}" if colour else "font-weight:bold"
        parts += [escape(text[place:match.start()]), f'<span style="{style}">{escape(match[0])}</span>']
        place = match.end()
    return _PRE.format("".join([*parts, escape(text[place:])]))
