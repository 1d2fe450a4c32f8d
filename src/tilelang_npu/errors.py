"""The one family of errors, and how they are shown.

A :class:`TileError` says what is wrong, at which line of the user's kernel, with the sizes and names, and what to do.
Nothing below the user's line is shown. An :class:`InternalError` is a fault of this package and keeps its traceback.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Location:
    """A place in a source file.

    Attributes:
        file: path of the file.
        line: line number, from 1.
        column: column of the first character, from 1; 0 where it is not known.
        end_column: column behind the last character, or 0.
    """

    file: str
    line: int
    column: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")

    def source(self) -> str:
        """The line's text without its end, or an empty string where the file cannot be read."""
        return linecache.getline(self.file, self.line).rstrip("\n")


class TileError(Exception):
    """A kernel, a call or an input file is wrong.

    Args:
        message: what is wrong, with sizes and names; no final stop.
        code: stable code of the diagnostic, such as ``T104``; ``S301`` is a deadlock, ``S302`` and on another hang, of the
            simulated machine.
        location: where; filled in by the front end when the raiser does not know it.
        label: short text beside the caret.
        notes: further facts, one line each.
        help: what to do about it.
    """

    def __init__(self, message: str, *, code: str, location: Location | None = None, label: str = "",
                 notes: Sequence[str] = (), help: str = "") -> None:  # noqa: A002  (the word the message prints)
        super().__init__(message)
        self.message = message
        self.code = code
        self.location = location
        self.label = label
        self.notes = tuple(notes)
        self.help = help

    def at(self, location: Location | None) -> TileError:
        """Fill in the location where none is known yet; returns the error itself."""
        if self.location is None:
            self.location = location
        return self

    def __str__(self) -> str:
        return render(self)


class SanitizerError(TileError):
    """A launch has hazards. It is over: its results are in the arrays.

    Args:
        message: the reports, as text.
        findings: the same as data (:class:`tilelang_npu.simulator.causes.Finding`).
    """

    def __init__(self, message: str, *, code: str, location: Location | None, findings: Sequence[object]) -> None:
        super().__init__(message, code=code, location=location)
        self.findings = tuple(findings)


class InternalError(Exception):
    """This package broke one of its own rules; please report it with the kernel that shows it."""


def render(error: TileError) -> str:
    """The error as text: header, place, the user's line with a caret, notes and help."""
    if isinstance(error, SanitizerError):  # each report has its own header and lines
        return error.message
    kind = "deadlock" if error.code == "S301" else "hang" if error.code.startswith("S3") else "error"
    lines = [f"{kind}[{error.code}]: {error.message}"]
    where = error.location
    if where is not None:
        lines.append(f"  --> {where}")
        text = where.source()
        if text:
            number = str(where.line)
            gutter = " " * len(number)
            lines += [f" {gutter} |", f" {number} | {text}"]
            if where.column:
                word = re.match(r"[\w.]+", text[where.column - 1:])
                end = where.end_column or where.column + (word.end() if word else 1)
                width = max(1, min(end, len(text) + 1) - where.column)
                mark = " " * (where.column - 1) + "^" * width
                lines.append(f" {gutter} | {mark}" + (f" {error.label}" if error.label else ""))
    lines += [f"   = {note}" for note in error.notes]
    if error.help:
        lines.append(f"   = help: {error.help}")
    return "\n".join(lines)
