"""Edits of source text as data: the file, the lines to replace, and the lines to write there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_SHOWN_ROWS, _SHOWN_COLUMNS = 8, 120
"""The numbers of lines and of characters of a change that are shown."""


@dataclass(frozen=True)
class SourceChange:
    """New lines in place of some lines of a source file.

    Attributes:
        file: the path of the file.
        line: the first line that is replaced, from 1.
        before: the lines that are replaced, without newlines; empty if lines are only inserted before ``line``.
        after: the lines in their place; empty if lines are only removed.
    """

    file: str
    line: int
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        """The change as lines of a patch; a long one is cut."""
        rows = [f"- {row}" for row in self.before] + [f"+ {row}" for row in self.after]
        if len(rows) > _SHOWN_ROWS:
            rows = [*rows[:_SHOWN_ROWS - 1], f"  and {len(rows) - _SHOWN_ROWS + 1} lines more"]
        return "\n".join(row[:_SHOWN_COLUMNS] for row in rows)

    def to_dict(self) -> dict[str, object]:
        """Returns the change as a dict that JSON can hold."""
        return {"file": self.file, "line": self.line, "before": list(self.before), "after": list(self.after)}


def apply_changes(text: str, changes: Sequence[SourceChange]) -> str:
    """Returns the text of a file with changes applied.

    Args:
        text: the text of the file.
        changes: changes of the file that replace different lines.

    Raises:
        ValueError: the lines to replace are not in the text at their place.
    """
    lines = text.splitlines()
    # Lines that are inserted before a line follow its replacement here, as the line then still has its number.
    for change in sorted(changes, key=lambda change: (change.line, bool(change.before)), reverse=True):
        first = change.line - 1
        if tuple(lines[first:first + len(change.before)]) != change.before:
            msg = f"line {change.line} of {change.file} is not the line that the change replaces"
            raise ValueError(msg)
        lines[first:first + len(change.before)] = change.after
    return "\n".join(lines) + "\n" * text.endswith("\n")
