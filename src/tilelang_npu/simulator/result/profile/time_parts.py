"""Reasons of time, and roundings of times that preserve their sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from tilelang_npu.errors import Location
from tilelang_npu.simulator.result import JsonObject

_Key = TypeVar("_Key")

GRAIN = 1 << 20
"""Times of a profile are multiples of a microsecond divided by this, about a picosecond: sums of such numbers are exact."""
WORK = frozenset({"compute", "scalar", "transfer", "short rows", "latency", "HBM", "L2"})
"""Kinds of reasons for which a pipe is busy."""


@dataclass(frozen=True)
class Reason:
    """The reason of a part of the time.

    Attributes:
        kind: ``compute``, ``scalar`` work, ``transfer``; for a transfer separately ``latency``, ``short rows``, and ``HBM`` or
            ``L2``, which other cores use too; ``issue`` of instructions, ``event``, ``flag`` and ``barrier`` until they have
            passed; ``launch``, ``next block``. For a pipe without work in flight: ``wait``, ``barrier``, ``not issued`` while
            the scalar unit has not reached the next op, ``finished`` in its block, ``idle`` after the core's last block, ``no
            work`` in a launch.
        core: the kind of core that works, or whose work is awaited.
        pipe: its pipe.
        op: its op.
        place: the op's line.
    """

    kind: str
    core: str = ""
    pipe: str = ""
    op: str = ""
    place: Location | None = None

    def __str__(self) -> str:
        words = {"wait": "waits for", "issue": "issue of", "short rows": "short rows of", "latency": "latency of",
                 "HBM": "HBM slows", "L2": "L2 slows", "event": "event after", "flag": "flag after",
                 "not issued": "not issued yet:"}
        where = f"line {self.place.line}" if self.place is not None else ""
        return " ".join(filter(None, (words.get(self.kind, self.kind), self.core, self.pipe, self.op, where)))

    def to_dict(self) -> JsonObject:
        """Returns the reason as data for JSON; empty fields are omitted."""
        found: JsonObject = {"kind": self.kind}
        found |= {name: value for name in ("core", "pipe", "op") if (value := getattr(self, name))}
        if self.place is not None:
            found["line"], found["file"] = self.place.line, self.place.file
        return found


@dataclass(frozen=True)
class TimePart:
    """A part of a time: microseconds and the reason."""

    us: float
    reason: Reason

    def __str__(self) -> str:
        return f"{self.us:9.2f} us  {self.reason}"

    def to_dict(self) -> JsonObject:
        """Returns the part as data for JSON."""
        return {"us": self.us, **self.reason.to_dict()}


def grained(us: float) -> float:
    """Returns the nearest multiple of the grain."""
    return round(us * GRAIN) / GRAIN


def apportioned(parts: Mapping[_Key, float], total: float) -> dict[_Key, float]:
    """Rounds the parts of a total to multiples of the grain that add up to it exactly; the largest part takes the difference.

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
    """Returns the parts of a total, the largest first."""
    found = apportioned(parts, total)
    return tuple(TimePart(us, reason) for reason, us in sorted(found.items(), key=lambda item: (-item[1], str(item[0]))))


def line_of(place: Location | None) -> Location | None:
    """Returns a location without its column, so that all ops of a line count together."""
    return None if place is None else Location(place.file, place.line)
