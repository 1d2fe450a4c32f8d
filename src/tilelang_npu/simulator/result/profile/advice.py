"""Advice: edits of a kernel's source that were tried, with the time of the edited kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tilelang_npu.errors import Location
from tilelang_npu.simulator.result import JsonObject
from tilelang_npu.source_changes import SourceChange


@dataclass(frozen=True)
class Advice:
    """An edit of a kernel's source that makes the kernel faster.

    The edited kernel was compiled and timed, and its results for generated inputs equal those of the kernel up to rounding.

    Attributes:
        cause: why the kernel loses time without the edit, in a few words.
        text: the edit in words.
        place: the edited line; None for a number of the factory.
        before: the modelled duration of the kernel in microseconds.
        after: the modelled duration of the edited kernel in microseconds.
        changes: what to write, and where; empty for another argument of the factory whose place in the file is not known.
    """

    cause: str
    text: str
    place: Location | None
    before: float
    after: float
    changes: tuple[SourceChange, ...]

    @property
    def gain(self) -> float:
        """The saved share of the kernel's duration, from 0 to 1."""
        return 1 - self.after / self.before

    @property
    def edit(self) -> str:
        """The source line and the edit in words, with the cause of the lost time."""
        where = f"line {self.changes[0].line}: " if self.changes else ""
        return f"{where}{self.text} ({self.cause})"

    @property
    def times(self) -> str:
        """The duration of the kernel before and after the edit, in words."""
        return f"{self.before:.2f} us become {self.after:.2f} ({-self.gain:+.0%}, compiled)"

    def __str__(self) -> str:
        """The edit in words with its gain, and the lines to write."""
        lines = [row for change in self.changes for row in str(change).splitlines()]
        return "\n    ".join([f"{self.edit}  {self.times}", *lines])

    def to_dict(self) -> JsonObject:
        """Returns the advice as a dict that JSON can hold."""
        return {"cause": self.cause, "text": self.text, "us": self.after, "gain": self.gain,
                "changes": [change.to_dict() for change in self.changes]}


class Tried(NamedTuple):
    """The result of trying edits of a kernel.

    Attributes:
        advice: the edits that make the kernel faster, the largest gain first.
        note: if there is no such edit, the reason; otherwise empty.
        refuted: the names of the causes of lost time (``LostTime.cause``) that the trials contradict.
    """

    advice: Sequence[Advice]
    note: str = ""
    refuted: frozenset[str] = frozenset()


NOT_TRIED = Tried((), "nothing was tried: edits are tried by kernel.profile(), not by the profile of a launch")
"""The result for a launch without its kernel."""
