"""Finds the words in the user's source that errors about ``jit(...)`` and ``compile(...)`` point at."""

from __future__ import annotations

import linecache

from tilelang_npu.errors import Location

_LINES = 12
"""Lines of a decorator or call that are searched."""


def location_of_word(word: str, call: Location | None) -> Location | None:
    """Returns the first occurrence of ``word`` in the lines from ``call`` on; ``call`` itself if they do not contain it."""
    if call is None:
        return None
    for line in range(call.line, call.line + _LINES):
        column = linecache.getline(call.file, line).find(word)
        if column >= 0:
            return Location(call.file, line, column + 1, column + 1 + len(word))
    return call
