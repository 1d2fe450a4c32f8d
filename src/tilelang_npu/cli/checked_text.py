"""The lines of a text that was checked, in a text that its author has edited since: for editors."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import cached_property

from tilelang_npu.source_changes import SourceChange

__all__ = ["LineMap"]


class LineMap:
    """The lines of a checked text that are unchanged in an edited text. Lines are numbered from 1.

    Args:
        checked: the lines of the text that was checked.
        edited: the lines of the edited text.
    """

    def __init__(self, checked: Sequence[str], edited: Sequence[str]) -> None:
        self._checked = [line.rstrip("\r\n") for line in checked]
        self._edited = [line.rstrip("\r\n") for line in edited]

    @cached_property
    def _by_checked(self) -> dict[int, int]:
        if self._checked == self._edited:
            return {line: line for line in range(1, len(self._checked) + 1)}
        matcher = difflib.SequenceMatcher(None, self._checked, self._edited, autojunk=False)
        return {block.a + place + 1: block.b + place + 1 for block in matcher.get_matching_blocks()
                for place in range(block.size)}

    @cached_property
    def _by_edited(self) -> dict[int, int]:
        return {edited: checked for checked, edited in self._by_checked.items()}

    def to_edited(self, line: int) -> int | None:
        """Returns the number in the edited text of a line of the checked text; None if the line was changed."""
        return self._by_checked.get(line)

    def to_checked(self, line: int) -> int | None:
        """Returns the number in the checked text of a line of the edited text; None if the line was changed."""
        return self._by_edited.get(line)

    def moved(self, change: SourceChange) -> SourceChange | None:
        """Returns a change of the checked text as a change of the edited text.

        None if one of the lines that the change replaces, or before which it inserts lines, was changed, or if lines were
        inserted between them.
        """
        count = max(len(change.before), 1)
        lines = [self.to_edited(change.line + place) for place in range(count)]
        first = lines[0]
        if first is None or lines != list(range(first, first + count)):
            return None
        if tuple(self._edited[first - 1:first - 1 + len(change.before)]) != change.before:
            return None  # the script was changed while it was checked
        return SourceChange(change.file, first, change.before, change.after)
