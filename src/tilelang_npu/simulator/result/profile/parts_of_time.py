"""What a part of the time is for, and parts of times that add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tilelang_npu.errors import Location

_Key = TypeVar("_Key")

GRAIN = 1 << 20
"""Times of a profile are multiples of a microsecond through this: a picosecond, and sums of such numbers are exact."""
WORK = frozenset({"compute", "scalar", "transfer", "short rows", "latency", "HBM", "L2"})
"""Kinds of reasons for which a pipe is busy."""


@dataclass(frozen=True)
class Reason:
    """What a part of the time is for.

    Attributes:
        kind: what goes on: ``compute``, ``scalar`` work, ``transfer``; of a transfer apart ``latency``, ``short rows``, and
            ``HBM`` or ``L2``, which other cores use as well; ``issue`` of instructions, ``event``, ``flag`` and ``barrier``
            until they are through; ``launch``, ``next block``. Of a pipe that has nothing in flight: ``wait``, ``barrier``,
            ``not issued`` while the scalar unit has not come to the next op, ``finished`` in its block, ``idle`` behind the
            core's last block, ``no work`` in a launch.
        core: the kind of core: that works, or whose work is waited for.
        pipe: the pipe of the same.
        op: the op of the same.
        place: its line.
    """

    kind: str
    core: str = ""
    pipe: str = ""
    op: str = ""
    place: Location | None = None

    def __str__(self) -> str:
        words = {"wait": "waits for", "issue": "issue of", "short rows": "short rows of", "latency": "latency of",
                 "HBM": "HBM slows", "L2": "L2 slows", "event": "event behind", "flag": "flag behind",
                 "not issued": "not issued yet:"}
        where = f"line {self.place.line}" if self.place is not None else ""
        return " ".join(filter(None, (words.get(self.kind, self.kind), self.core, self.pipe, self.op, where)))

    def to_dict(self) -> dict[str, Any]:
        """The reason as JSON holds it; what is empty is left out."""
        found: dict[str, Any] = {"kind": self.kind}
        found |= {name: value for name in ("core", "pipe", "op") if (value := getattr(self, name))}
        if self.place is not None:
            found["line"], found["file"] = self.place.line, self.place.file
        return found


@dataclass(frozen=True)
class TimePart:
    """A part of a time: microseconds, and what they are for."""

    us: float
    reason: Reason

    def __str__(self) -> str:
        return f"{self.us:9.2f} us  {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """The part as JSON holds it."""
        return {"us": self.us, **self.reason.to_dict()}


def grained(us: float) -> float:
    """The nearest multiple of the grain."""
    return round(us * GRAIN) / GRAIN


def apportioned(parts: Mapping[_Key, float], total: float) -> dict[_Key, float]:
    """Parts of a total as multiples of the grain that add up to it exactly; what rounding leaves, the largest has.

    Args:
        parts: microseconds, which add up to the total but for rounding.
        total: a multiple of the grain.
    """
    found = {key: grained(us) for key, us in parts.items()}
    if found:
        largest = max(found, key=lambda key: found[key])
        found[largest] += total - sum(found.values())
    return {key: us for key, us in found.items() if us}


def sorted_parts(parts: Mapping[Reason, float], total: float) -> tuple[TimePart, ...]:
    """The parts of a total, the largest first."""
    found = apportioned(parts, total)
    return tuple(TimePart(us, reason) for reason, us in sorted(found.items(), key=lambda item: (-item[1], str(item[0]))))


def line_of(place: Location | None) -> Location | None:
    """The line alone: ops of one line count together."""
    return None if place is None else Location(place.file, place.line)
