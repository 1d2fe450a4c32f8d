"""Which word of the user's source an error of the host side points at."""

from __future__ import annotations

import linecache

from tilelang_npu.errors import Location

__all__ = ["find"]


def find(word: str, near: Location | None, lines: int = 12) -> Location | None:
    """The first place of ``word`` in the source at or shortly behind ``near``; ``near`` itself where it does not occur."""
    if near is None:
        return None
    for line in range(near.line, near.line + lines):
        column = linecache.getline(near.file, line).find(word)
        if column >= 0:
            return Location(near.file, line, column + 1, column + 1 + len(word))
    return near
