"""Converts between positions in source files, which errors have, and MLIR locations, which operations have."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from tilelang_npu.errors import Location

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr


@lru_cache(maxsize=4096)
def _attribute(file: str, line: int, column: int, callers: tuple[Location, ...]) -> LocationAttr:
    from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, IntAttr, StringAttr

    own = FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))
    if not callers:
        return own
    call, *outer = callers
    return CallSiteLoc(own, _attribute(call.file, call.line, call.column, tuple(outer)))


def location_attribute(location: Location) -> LocationAttr:
    """Returns the MLIR location for a position: file, line and column, both counted from 1.

    A position in a macro is the location ``callsite(MACRO at CALL)``.
    """
    return _attribute(location.file, location.line, location.column, location.callers)


def place_of(attribute: LocationAttr) -> Location | None:
    """Returns the position in an MLIR location; None if the location is neither a file location nor a call of a macro there."""
    from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, LocationAttr

    if isinstance(attribute, CallSiteLoc) and isinstance(attribute.callee, LocationAttr):
        return place_of(attribute.callee)
    if not isinstance(attribute, FileLineColLoc):
        return None
    return Location(attribute.filename.data, attribute.line.data, attribute.column.data)


def span(node: ast.AST, file: str, lines: list[str]) -> Location:
    """Returns the position of a syntax node: its first line, from the node's first column to its end or to the end of the line.

    Args:
        node: the node.
        file: the path of the file.
        lines: the lines of the file.
    """
    line: int = getattr(node, "lineno", 1)
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    first = _characters(text, getattr(node, "col_offset", 0))
    if getattr(node, "end_lineno", line) == line:
        end = _characters(text, getattr(node, "end_col_offset", None) or first)
    else:
        end = len(text.rstrip("\n"))
    return Location(file, line, first + 1, end + 1)


def _characters(text: str, offset: int) -> int:
    """A column of Python's syntax tree, which counts bytes, in characters."""
    return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))
