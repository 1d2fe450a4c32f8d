"""``Reason`` and ``TimePart``, which say what a part of a time is spent on, and rounding of times that preserves their sum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from tilelang_npu.errors import Location
from tilelang_npu.simulator.result import JsonObject
from tilelang_npu.target.chip_data import CoreKind, Pipe

_Key = TypeVar("_Key")

GRAIN = 1 << 20
"""The times of a profile are multiples of 1/``GRAIN`` microseconds (about a picosecond), so that sums of them are exact."""
WORK = frozenset({"compute", "scalar", "transfer", "short rows", "latency", "HBM", "L2", "link"})
"""The kinds of reasons in which a pipe has work in flight."""


@dataclass(frozen=True)
class Reason:
    """The reason of a part of the time: what a pipe, or the critical path, spends it on.

    Attributes:
        kind: the kind of reason. Work: ``compute``; ``scalar``, work of the scalar unit; ``transfer``; and the parts of a
            transfer's time that are caused by ``latency``, by ``short rows``, or by the share of ``HBM`` or ``L2`` that other
            cores use; ``link``, a transfer between cards. Overheads: ``issue``, the scalar unit issues instructions;
            ``event``, ``flag`` and ``barrier``, the delay of a synchronisation; ``launch``, launch overhead; ``next block``,
            the dispatch of the core's next block. A pipe without work: ``wait``, it waits for a set; ``barrier``; ``not
            issued``, the scalar unit has not reached the next op of the pipe; ``finished``, the pipe has no more work in its
            block; ``idle``, the core has no more blocks; ``no work``, the pipe is not used in a launch.
        core: the kind of core that works, or whose work is waited for; empty for none.
        pipe: the pipe that works, or whose work is waited for; empty for none.
        op: the name of the op; empty for none.
        place: the source line of the op; None if unknown.
    """

    kind: str
    core: CoreKind | Literal[""] = ""
    pipe: Pipe | Literal[""] = ""
    op: str = ""
    place: Location | None = None

    def __str__(self) -> str:
        words = {"wait": "waits for", "issue": "issue of", "short rows": "short rows of", "latency": "latency of",
                 "HBM": "HBM slows", "L2": "L2 slows", "event": "event after", "flag": "flag after",
                 "not issued": "not issued yet:"}
        where = f"line {self.place.line}" if self.place is not None else ""
        return " ".join(filter(None, (words.get(self.kind, self.kind), self.core, self.pipe, self.op, where)))

    def to_dict(self) -> JsonObject:
        """Returns the reason as a dict that JSON can hold, without empty fields."""
        found: JsonObject = {"kind": self.kind}
        found |= {name: value for name in ("core", "pipe", "op") if (value := getattr(self, name))}
        if self.place is not None:
            found["line"], found["file"] = self.place.line, self.place.file
        return found


@dataclass(frozen=True)
class TimePart:
    """A part of a time.

    Attributes:
        us: the length of the part in microseconds.
        reason: what the part is spent on.
    """

    us: float
    reason: Reason

    def __str__(self) -> str:
        return f"{self.us:9.2f} us  {self.reason}"

    def to_dict(self) -> JsonObject:
        """Returns the part as a dict that JSON can hold."""
        return {"us": self.us, **self.reason.to_dict()}


def grained(us: float) -> float:
    """Returns the multiple of 1/``GRAIN`` microseconds that is nearest to ``us`` microseconds."""
    return round(us * GRAIN) / GRAIN


def apportioned(parts: Mapping[_Key, float], total: float) -> dict[_Key, float]:
    """Returns the parts of a total, rounded to multiples of 1/``GRAIN`` microseconds that add up to the total exactly. The
    largest part gets the difference; parts that become 0 are left out.

    Args:
        parts: the parts in microseconds; their sum differs from the total only by rounding errors.
        total: the total, which must be a multiple of 1/``GRAIN`` microseconds.
    """
    found = {key: grained(us) for key, us in parts.items()}
    if found:
        largest = max(found, key=lambda key: found[key])
        found[largest] += total - sum(found.values())
    return {key: us for key, us in found.items() if us}


def sorted_parts(parts: Mapping[Reason, float], total: float) -> tuple[TimePart, ...]:
    """Returns the parts of a total, rounded so that they add up to it exactly, the largest first.

    Args:
        parts: the microseconds of each reason.
        total: the total in microseconds, which must be a multiple of 1/``GRAIN``.
    """
    found = apportioned(parts, total)
    return tuple(TimePart(us, reason) for reason, us in sorted(found.items(), key=lambda item: (-item[1], str(item[0]))))


def longest_line(times: Iterable[tuple[Reason, float]]) -> tuple[Location, float] | None:
    """Returns the source line with most time and this time; None if no time has a line.

    Args:
        times: pairs of a reason and its time.
    """
    lines: dict[Location, float] = {}
    for reason, time in times:
        if reason.place is not None:
            lines[reason.place] = lines.get(reason.place, 0.0) + time
    return max(lines.items(), key=lambda item: item[1], default=None)


def line_of(place: Location | None) -> Location | None:
    """Returns a location without its column, so that all ops of a source line have equal locations; None for None."""
    return None if place is None else Location(place.file, place.line)
