"""Separates the lines of a printed module from the locations at their ends, for pages with the text and its script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["LocatedLine", "located_lines"]

_LOCATION = re.compile(r' loc\((?:callsite\()*(?:"([^"]*)":(\d+):\d+.*|[^()]*|[^()]*\([^()]*\)[^()]*)\)$')
"""The location at the end of a line of MLIR; of a call of a macro, the groups are the macro's line."""
_NOTE = re.compile(r"  // ([^/]*)$")


class LocatedLine(NamedTuple):
    """A line of a printed module.

    Attributes:
        text: the line without its location and without its note.
        file: the source file that the line's op was made from; empty if it has no location in a file.
        line: the line of that file, from 1 on; 0 if it has no location in a file.
        note: the comment of the line's op (``notes`` of ``print_module``); empty for none.
    """

    text: str
    file: str
    line: int
    note: str


def located_lines(text: str) -> Iterator[LocatedLine]:
    """Yields the lines of a text that ``print_module`` made with ``locations=True``."""
    for line in text.splitlines():
        commented = _NOTE.search(line)
        note = "" if commented is None else commented[1]
        rest = line if commented is None else line[:commented.start()]
        placed = _LOCATION.search(rest)
        if placed is None:
            yield LocatedLine(rest, "", 0, note)
        elif placed[1] is None:
            yield LocatedLine(rest[:placed.start()], "", 0, note)
        else:
            yield LocatedLine(rest[:placed.start()], placed[1], int(placed[2]), note)
