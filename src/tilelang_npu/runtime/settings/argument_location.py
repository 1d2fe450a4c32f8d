"""Finds the source location of an argument of ``jit(...)`` or ``compile(...)``, to which an error message points."""

from __future__ import annotations

import linecache

from tilelang_npu.errors import Location

_LINES = 12
"""Lines of a decorator or call that are searched."""


def location_of_word(word: str, call: Location | None) -> Location | None:
    """Returns the location of the first occurrence of a word in the source of a call.

    Args:
        word: the word, such as the name of an argument.
        call: the location of the call or decorator; its line and the 11 lines below it are searched.

    Returns:
        The location of the word; ``call`` itself if these lines do not contain the word; None if ``call`` is None.
    """
    if call is None:
        return None
    for line in range(call.line, call.line + _LINES):
        column = linecache.getline(call.file, line).find(word)
        if column >= 0:
            return Location(call.file, line, column + 1, column + 1 + len(word))
    return call
