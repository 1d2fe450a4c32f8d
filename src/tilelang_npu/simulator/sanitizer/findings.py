"""Grouping of hazards by cause: all hazards that follow from one missing wait are one finding.

Inside a core, an event between two pipes has one place in the program. So all pairs of these two pipes that begin before a
place and end after it lack the same event; in a loop, a pair may end in the next iteration. Flags that were set for the event
and have no wait belong to it. Between cores a flag has no such place: pairs of the same pipes of the same cores are one
finding, unless one pair ends before the other begins, because then no flag orders both. Between blocks, hazards of one tensor
with a line in common are one finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tilelang_npu.display import Report
from tilelang_npu.errors import Location
from tilelang_npu.simulator.sanitizer.hazard import Hazard, Site

_NONE = Hazard("", "flag", Site("", None, "", "", 0), None, "", 0, 0, "", 0)
"""Placeholder for a finding's hazard: the rest of the finding identifies its kernel and its suppression."""


@dataclass(frozen=True)
class Finding(Report):
    """Hazards with one cause.

    Attributes:
        hazard: the hazard that is shown in full.
        others: hazards with the same cause.
        kernel: the kernel in which it was found.
        chip: the chip that the kernel was compiled for.
        allowed: the user's reason to suppress it; None if it is not suppressed.
        in_source: whether the reason is in the source line, not on the command line.
    """

    hazard: Hazard
    others: tuple[Hazard, ...] = ()
    kernel: str = ""
    chip: str = ""
    allowed: str | None = None
    in_source: bool = False

    @property
    def code(self) -> str:
        """The code of the hazard that is shown."""
        return self.hazard.code

    @property
    def location(self) -> Location | None:
        """The line to look at: of two accesses the later one."""
        site = self.hazard.second or self.hazard.first
        return site.location or self.hazard.first.location

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """All of them."""
        return (self.hazard, *self.others)

    def __str__(self) -> str:
        lines = [str(self.hazard)]
        if self.others:
            lines.append(f"  and {len(self.others)} more with the same cause")
            lines += [f"    {brief(hazard)}" for hazard in self.others]
        return "\n".join(lines)


def brief(hazard: Hazard) -> str:
    """Returns a hazard in one line."""
    if hazard.kind in ("flag", "address"):
        return f"{hazard.code}  {_place(hazard.first)}  {hazard.missing}"
    second = f" -> {_place(hazard.second)}" if hazard.second is not None else ""
    name = f" of {hazard.buffer}" if hazard.buffer else ""
    where = f" bytes {hazard.start}..{hazard.end - 1}" if hazard.end > hazard.start else ""  # padding has a buffer, no bytes
    return f"{hazard.code}  {_place(hazard.first)}{second}  {hazard.kind}, {hazard.memory}{where}{name}"


def _place(site: Site) -> str:
    return f"{f'line {site.location.line}' if site.location is not None else site.op} ({site.pipe})"


def causes(hazards: Iterable[Hazard], kernel: str = "", chip: str = "") -> list[Finding]:
    """Groups the hazards of one kernel by cause, and returns the findings in the order of their lines.

    Args:
        hazards: the hazards, in any order.
        kernel, chip: as for ``Finding``.
    """
    ordered = sorted(dict.fromkeys(hazards), key=_rank)
    follows = {one: cause for one in ordered for cause in [_cause(one, ordered)] if cause is not None}
    groups = [*_in_core([one for one in ordered if one.code == "S201" and one not in follows]),
              *_joined([one for one in ordered if one.code == "S202" and one not in follows],
                       lambda one, two: (_edge(one), one.hand_over) == (_edge(two), two.hand_over)),
              *_joined([one for one in ordered if one.code == "S203"], _same_tensor),
              *_joined([one for one in ordered if one.code in ("S221", "S222", "S223", "S224")], _same_read)]
    for hazard, cause in follows.items():
        next(group for group in groups if cause in group).append(hazard)
    rest = []
    for flags in _joined([one for one in ordered if one.kind == "flag"], _same_flag):
        group = _waiting(groups, flags[0])
        if group is None:
            rest.append(flags)
        else:
            group += flags
    findings = [Finding(group[0], tuple(group[1:]), kernel, chip) for group in (*groups, *rest)]
    return sorted(findings, key=lambda finding: _rank(finding.hazard))


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Merges the findings of several launches: each cause once, in the order of their lines."""
    parts: dict[Finding, dict[object, Hazard]] = {}
    for finding in findings:
        known = parts.setdefault(replace(finding, hazard=_NONE, others=()), {})
        for hazard in finding.hazards:
            known.setdefault(hazard.key, hazard)
    made = [replace(part, hazard=one.hazard, others=one.others)
            for part, known in parts.items() for one in causes(known.values())]
    return sorted(made, key=lambda finding: (_rank(finding.hazard), finding.kernel, finding.chip, finding.allowed or ""))


def _line(site: Site | None) -> tuple[str, int, int]:
    place = site.location if site is not None else None
    return (place.file, place.line, place.column) if place is not None else ("", site.number if site is not None else -1, 0)


def _rank(hazard: Hazard) -> tuple[object, ...]:
    """Returns the sort key: by line, the closest pair first."""
    second = hazard.second or hazard.first
    return (_line(second), hazard.code, second.number <= hazard.first.number, -hazard.first.number, _line(hazard.first),
            second.number, hazard.memory, hazard.start, hazard.end, hazard.kind, second.core, hazard.first.core,
            hazard.first.operand, second.operand, hazard.block, hazard.missing)


def _edge(hazard: Hazard) -> tuple[str, ...]:
    """Returns the pipes and kinds of cores of both accesses."""
    return tuple(part for site in (hazard.first, hazard.second) if site is not None for part in (site.core[:3], site.pipe))


def _cause(hazard: Hazard, every: Sequence[Hazard]) -> Hazard | None:
    """Returns, for two writes, the read between them that the second does not wait for: that wait would order the writes
    too."""
    if hazard.kind != "WAW" or hazard.code not in ("S201", "S202"):
        return None
    return next((one for one in every if one.kind == "WAR" and one.code in ("S201", "S202") and _target(one) == _target(hazard)
                 and one.start < hazard.end and hazard.start < one.end), None)


def _target(hazard: Hazard) -> tuple[object, ...]:
    assert hazard.second is not None
    return hazard.second.core, hazard.second.number, hazard.memory


def _in_core(hazards: Sequence[Hazard]) -> list[list[Hazard]]:
    """Groups pairs of the same pipes around one place of the program: the place before the first pair's later op."""
    groups: list[list[Hazard]] = []
    left = sorted(hazards, key=_ends)
    while left:
        head = left[0]
        place = _ends(head)[1]
        group = [one for one in left if _spans(one, place) and one.first.core[:3] == head.first.core[:3]
                 and (_edge(one) == _edge(head) or (head.barriers and one.barriers))]
        groups.append(group)
        left = [one for one in left if one not in group]
    return groups


def _ends(hazard: Hazard) -> tuple[bool, int]:
    """Returns the sort key of the later op: pairs of one iteration first."""
    assert hazard.second is not None
    return hazard.second.number <= hazard.first.number, hazard.second.number


def _spans(hazard: Hazard, place: int) -> bool:
    """Whether a pair's earlier op is before a place of the program, and its later op at or after it."""
    assert hazard.second is not None
    first, second = hazard.first.number, hazard.second.number
    if first < second:
        return first < place <= second
    return place > first or place <= second  # the later op runs in another iteration


def _joined(hazards: Sequence[Hazard], together: Callable[[Hazard, Hazard], bool]) -> list[list[Hazard]]:
    """Groups hazards by the transitive closure of a relation."""
    groups: list[list[Hazard]] = []
    for hazard in hazards:
        near = [group for group in groups if any(together(one, hazard) for one in group)]
        groups = [group for group in groups if group not in near]
        groups.append([*(one for group in near for one in group), hazard])
    return groups


def _same_tensor(one: Hazard, other: Hazard) -> bool:
    lines = [{_line(site) for site in (hazard.first, hazard.second)} for hazard in (one, other)]
    return one.buffer == other.buffer and bool(lines[0] & lines[1])


def _same_read(one: Hazard, other: Hazard) -> bool:
    return (_line(one.first), one.kind == "address") == (_line(other.first), other.kind == "address")


def _same_flag(one: Hazard, other: Hazard) -> bool:
    return (one.first.core[:3], one.first.pipe, one.flag[0], one.flag[1][:3]) == (
        other.first.core[:3], other.first.pipe, other.flag[0], other.flag[1][:3])


def _waiting(groups: Sequence[list[Hazard]], flag: Hazard) -> list[Hazard] | None:
    """Returns the races that the wait for a flag would prevent; None if there are none."""
    found: list[tuple[tuple[bool, int], list[Hazard]]] = []
    for group in groups:
        for race in group:
            if race.second is None or race.code not in ("S201", "S202") or race.first.core[:3] != flag.first.core[:3]:
                continue
            across = race.code == "S202" and flag.flag[1][:3] == race.second.core[:3]
            inside = race.code == "S201" and (flag.first.pipe, flag.flag[1]) == (race.first.pipe, race.second.pipe)
            if inside:
                found.append(((not _spans(race, flag.first.number), 0), group))
            elif across:  # the flag is set after the op that it is for; the nearest such op is the likeliest
                behind = flag.first.number - race.first.number
                found.append(((behind < 0, abs(behind)), group))
    return min(found, key=lambda one: one[0])[1] if found else None
