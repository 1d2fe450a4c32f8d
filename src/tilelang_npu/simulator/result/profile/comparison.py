"""``compare``, which compares two profiles: it lists the differences in time by source line, by reason and by pipe."""

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
"""The minimum difference, as a share of the longer of both times, that the text shows."""


@dataclass(frozen=True)
class Difference:
    """A time that occurs in two profiles.

    Attributes:
        what: the source line, the pipe, or the reason on the critical path that the time belongs to.
        first: the time in the first profile, in microseconds.
        second: the time in the second profile, in microseconds.
    """

    what: str
    first: float
    second: float

    @property
    def us(self) -> float:
        """The second time minus the first, in microseconds."""
        return self.second - self.first

    def __str__(self) -> str:
        return f"{self.us:+9.2f} us  {self.first:9.2f} -> {self.second:<9.2f} {self.what}"

    def to_dict(self) -> JsonObject:
        """Returns the difference as a dict that JSON can hold."""
        return {"what": self.what, "first_us": self.first, "second_us": self.second, "us": self.us}


@dataclass(frozen=True)
class Comparison:
    """The differences between two profiles; in each table the largest difference comes first.

    Attributes:
        first: the name of the first profile.
        second: the name of the second profile.
        total: the durations of both calls.
        lines: the parts of the critical path by source line; they add up to ``total``. Lines of both profiles are matched by
            number if the profiles have a file in common, otherwise by text.
        kinds: the parts of the critical path by kind of reason, kind of core and pipe; they add up to ``total``.
        pipes: the busy times of each pipe.
    """

    first: str
    second: str
    total: Difference
    lines: tuple[Difference, ...]
    kinds: tuple[Difference, ...]
    pipes: tuple[Difference, ...]

    def to_dict(self) -> JsonObject:
        """Returns the comparison as a dict that JSON can hold."""
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
    """Returns the differences between two profiles."""
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
    """Yields the differences between the times of both profiles, the largest first.

    Args:
        first: pairs of an item and its microseconds in the first profile; the times of equal items are added.
        second: the same for the second profile.
    """
    found: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for side, rows in enumerate((first, second)):
        for what, us in rows:
            found[what][side] += us
    rows_of_both = [Difference(what, *both) for what, both in found.items()]
    yield from sorted(rows_of_both, key=lambda row: (-abs(row.us), row.what))
