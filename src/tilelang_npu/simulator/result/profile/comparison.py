"""Comparison of two profiles: where the difference of their times comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilelang_npu.errors import Location
from tilelang_npu.simulator.result import JsonObject

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.profile.launch_profile import Profile

SHOWN = 0.005
"""Share of the longer time from which on a difference is shown."""


@dataclass(frozen=True)
class Difference:
    """One item of two profiles.

    Attributes:
        what: a line, a pipe, or a reason on the critical path.
        first, second: its microseconds in each profile.
    """

    what: str
    first: float
    second: float

    @property
    def us(self) -> float:
        """How much longer the second takes."""
        return self.second - self.first

    def __str__(self) -> str:
        return f"{self.us:+9.2f} us  {self.first:9.2f} -> {self.second:<9.2f} {self.what}"

    def to_dict(self) -> JsonObject:
        """Returns the row as data for JSON."""
        return {"what": self.what, "first_us": self.first, "second_us": self.second, "us": self.us}


@dataclass(frozen=True)
class Comparison:
    """Two profiles, the largest differences first.

    Attributes:
        first, second: the names of the profiles.
        total: the times.
        lines: by line of the script: by its number if both are of one file, otherwise by its text. The differences add up to
            that of the times.
        kinds: by reason on the critical path, and pipe; these add up too.
        pipes: busy microseconds of each pipe.
    """

    first: str
    second: str
    total: Difference
    lines: tuple[Difference, ...]
    kinds: tuple[Difference, ...]
    pipes: tuple[Difference, ...]

    def to_dict(self) -> JsonObject:
        """Returns the comparison as data for JSON."""
        tables = {name: [row.to_dict() for row in getattr(self, name)] for name in ("lines", "kinds", "pipes")}
        return {"first": self.first, "second": self.second, "total": self.total.to_dict(), **tables}

    def __str__(self) -> str:
        least = SHOWN * max(self.total.first, self.total.second)
        found = [f"{self.first} against {self.second}: {self.total}".rstrip()]
        for title, rows in (("lines, by their part of the critical path", self.lines),
                            ("the critical path by reason", self.kinds), ("busy pipes", self.pipes)):
            shown = [f"  {row}" for row in rows if abs(row.us) >= least]
            found += ["", title, *(shown or ["  no difference"])]
        return "\n".join(found)


def compare(first: Profile, second: Profile) -> Comparison:
    """Compares two profiles."""
    both = first, second
    files = [{row.place.file for row in one.lines if row.place is not None} for one in both]
    by_number = bool(files[0] & files[1])
    lines = _differences(*([(_called(row.place, by_number), row.us) for row in one.lines] for one in both))
    kinds = _differences(*([(f"{part.reason.kind} {part.reason.core} {part.reason.pipe}".rstrip(), part.us)
                            for part in one.critical_path] for one in both))
    pipes = _differences(*([(f"{row.core} {row.pipe}", row.busy_us) for row in one.pipes] for one in both))
    names = [one.kernel if first.kernel != second.kernel else f"{one.kernel} ({one.launch.blocks} blocks, {one.chip})"
             for one in both]
    total = Difference("", first.time_us, second.time_us)
    return Comparison(names[0], names[1], total, tuple(lines), tuple(kinds), tuple(pipes))


def _called(place: Location | None, by_number: bool) -> str:
    if place is None:
        return "no line"
    source = place.source().strip()
    return f"line {place.line}  {source}".rstrip() if by_number else source or f"line {place.line}"


def _differences(first: Iterable[tuple[str, float]], second: Iterable[tuple[str, float]]) -> Iterator[Difference]:
    """Yields the rows of both, the largest difference first."""
    found: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for side, rows in enumerate((first, second)):
        for what, us in rows:
            found[what][side] += us
    rows_of_both = [Difference(what, *both) for what, both in found.items()]
    yield from sorted(rows_of_both, key=lambda row: (-abs(row.us), row.what))
