"""Places in source files: of errors, and of operations."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from tilelang_npu.errors import Location

if TYPE_CHECKING:
    from xdsl.dialects.builtin import FileLineColLoc, LocationAttr


@lru_cache(maxsize=4096)
def _attribute(file: str, line: int, column: int) -> FileLineColLoc:
    from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


def location_attribute(location: Location) -> LocationAttr:
    """The location of an operation: file, line and column (from 1)."""
    return _attribute(location.file, location.line, location.column)


def place_of(attribute: LocationAttr) -> Location | None:
    """The place in the location of an operation; None where it is unknown."""
    from xdsl.dialects.builtin import FileLineColLoc

    if not isinstance(attribute, FileLineColLoc):
        return None
    return Location(attribute.filename.data, attribute.line.data, attribute.column.data)


def span(node: ast.AST, file: str, lines: list[str]) -> Location:
    """The place of a node: from its first column to its end, or to the end of its first line."""
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
