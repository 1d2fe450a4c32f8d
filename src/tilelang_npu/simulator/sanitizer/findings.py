"""Grouping of hazards by cause: all hazards that one missing wait causes become one ``Finding``.

- Inside a core, an event between two pipes is waited for at one position in the program. All races between these two pipes
  whose first op precedes that position and whose second op follows it lack the same event. In a loop, the second op can belong
  to the next iteration. An event that is set and never waited for belongs to the races that its wait would prevent.
- Between the cores of a block, races between the same pipes of the same kinds of cores are one finding, unless one race ends
  before the other begins, because then no single flag orders both.
- Between blocks, races on one tensor that have a source line in common are one finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilelang_npu.display import Report
from tilelang_npu.errors import Location
from tilelang_npu.simulator.sanitizer.hazard import Hazard, Site

if TYPE_CHECKING:
    from tilelang_npu.diagnostic_codes import Code

_NONE = Hazard("S201", "flag", Site("", None, "", "", 0), None, "", 0, 0, "", 0)
"""A placeholder hazard: findings with it as ``hazard`` are equal if they have the same kernel, chip and suppression."""


@dataclass(frozen=True)
class Finding(Report):
    """A group of hazards with one cause, which one repair removes.

    Attributes:
        hazard: the hazard that the report shows in full.
        others: further hazards with the same cause, which the report shows in one line each; equal lines once.
        kernel: the name of the kernel in which the hazards were found.
        chip: the name of the chip that the kernel was compiled for.
        allowed: the reason that the user gave to suppress the finding; None if the finding is not suppressed.
        in_source: whether that reason is written in the source line; otherwise it is given on the command line.
    """

    hazard: Hazard
    others: tuple[Hazard, ...] = ()
    kernel: str = ""
    chip: str = ""
    allowed: str | None = None
    in_source: bool = False

    @property
    def code(self) -> Code:
        """The code of ``hazard``, such as ``S201``."""
        return self.hazard.code

    @property
    def location(self) -> Location | None:
        """The source location to report: that of the hazard's second op, or of its first op if there is no second."""
        site = self.hazard.second or self.hazard.first
        return site.location or self.hazard.first.location

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """All hazards of the finding: ``hazard`` and ``others``."""
        return (self.hazard, *self.others)

    def __str__(self) -> str:
        lines = [str(self.hazard)]
        # Hazards of other blocks or iterations often differ only in facts that a line does not show.
        more = [text for text in dict.fromkeys(map(brief, self.others)) if text != brief(self.hazard)]
        if more:
            lines.append(f"  and {len(more)} more with the same cause")
            lines += [f"    {text}" for text in more]
        return "\n".join(lines)


def brief(hazard: Hazard) -> str:
    """Returns a hazard as one line of text: code, lines and pipes of the ops, kind, and the bytes concerned."""
    if hazard.kind in ("flag", "address"):
        return f"{hazard.code}  {_place(hazard.first)}  {hazard.missing}"
    second = f" -> {_place(hazard.second)}" if hazard.second is not None else ""
    name = f" of {hazard.buffer}" if hazard.buffer else ""
    where = f" bytes {hazard.start}..{hazard.end - 1}" if hazard.end > hazard.start else ""  # padding has a buffer, no bytes
    return f"{hazard.code}  {_place(hazard.first)}{second}  {hazard.kind}, {hazard.memory}{where}{name}"


def _place(site: Site) -> str:
    return f"{site.location.line_with_calls if site.location is not None else site.op} ({site.pipe})"


def causes(hazards: Iterable[Hazard], kernel: str = "", chip: str = "") -> list[Finding]:
    """Groups the hazards of one kernel by cause, and returns the findings in the order of their source lines.

    Args:
        hazards: the hazards, in any order.
        kernel: the name of the kernel.
        chip: the name of the chip that the kernel was compiled for.
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
    """Merges the findings of several launches: returns each cause once, in the order of the source lines.

    Findings of different kernels or chips, or with different suppressions, are not merged.
    """
    parts: dict[Finding, dict[object, Hazard]] = {}
    for finding in findings:
        known = parts.setdefault(replace(finding, hazard=_NONE, others=()), {})
        for hazard in finding.hazards:
            known.setdefault(hazard.key, hazard)
    made = [replace(part, hazard=one.hazard, others=one.others)
            for part, known in parts.items() for one in causes(known.values())]
    return sorted(made, key=lambda finding: (_rank(finding.hazard), finding.kernel, finding.chip, finding.allowed or ""))


def _line(site: Site) -> tuple[str, int, int]:
    place = site.location
    return (place.file, place.line, place.column) if place is not None else ("", site.number, 0)


def _rank(hazard: Hazard) -> tuple[object, ...]:
    """Returns the sort key of a hazard: the line of the second op; on one line, the pair of closest ops comes first."""
    second = hazard.second or hazard.first
    return (_line(second), hazard.code, second.number <= hazard.first.number, -hazard.first.number, _line(hazard.first),
            second.number, hazard.memory, hazard.start, hazard.end, hazard.kind, second.core, hazard.first.core,
            hazard.first.operand, second.operand, hazard.block, hazard.missing)


def _edge(hazard: Hazard) -> tuple[str, ...]:
    """Returns the kind of core and the pipe of the first op, and those of the second op."""
    return tuple(part for site in (hazard.first, hazard.second) if site is not None for part in (site.core[:3], site.pipe))


def _cause(hazard: Hazard, every: Sequence[Hazard]) -> Hazard | None:
    """Returns the race to report in place of a race between two writes; None if there is none.

    It is a race of the second write with a read of the same bytes: a wait for the read before the second write would order the
    two writes too.
    """
    if hazard.kind != "WAW" or hazard.code not in ("S201", "S202"):
        return None
    return next((one for one in every if one.kind == "WAR" and one.code in ("S201", "S202") and _target(one) == _target(hazard)
                 and one.start < hazard.end and hazard.start < one.end), None)


def _target(hazard: Hazard) -> tuple[object, ...]:
    assert hazard.second is not None
    return hazard.second.core, hazard.second.number, hazard.memory


def _in_core(hazards: Sequence[Hazard]) -> list[list[Hazard]]:
    """Groups races inside a core by the position in the program where one event (or one barrier of all pipes) would order them:
    directly before the second op of the first race."""
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
    """Returns the sort key of a race: races within one iteration first, then by the number of the second op."""
    assert hazard.second is not None
    return hazard.second.number <= hazard.first.number, hazard.second.number


def _spans(hazard: Hazard, place: int) -> bool:
    """Whether the first op of a race precedes a position of the program and its second op is at or after that position, if
    necessary in another iteration."""
    assert hazard.second is not None
    first, second = hazard.first.number, hazard.second.number
    if first < second:
        return first < place <= second
    return place > first or place <= second  # the later op runs in another iteration


def _joined(hazards: Sequence[Hazard], together: Callable[[Hazard, Hazard], bool]) -> list[list[Hazard]]:
    """Groups hazards by the transitive closure of a relation.

    Args:
        hazards: the hazards.
        together: whether two hazards belong to one group.
    """
    groups: list[list[Hazard]] = []
    for hazard in hazards:
        near = [group for group in groups if any(together(one, hazard) for one in group)]
        groups = [group for group in groups if group not in near]
        groups.append([*(one for group in near for one in group), hazard])
    return groups


def _same_tensor(one: Hazard, other: Hazard) -> bool:
    lines = [{_line(site) for site in (hazard.first, hazard.second) if site is not None} for hazard in (one, other)]
    return one.buffer == other.buffer and bool(lines[0] & lines[1])


def _same_read(one: Hazard, other: Hazard) -> bool:
    return (_line(one.first), one.kind == "address") == (_line(other.first), other.kind == "address")


def _same_flag(one: Hazard, other: Hazard) -> bool:
    return (one.first.core[:3], one.first.pipe, one.flag[0], one.flag[1][:3]) == (
        other.first.core[:3], other.first.pipe, other.flag[0], other.flag[1][:3])


def _waiting(groups: Sequence[list[Hazard]], flag: Hazard) -> list[Hazard] | None:
    """Returns the group of races that the missing wait for a flag or event would prevent; None if there is none.

    Args:
        groups: the groups of races.
        flag: the hazard of a flag or event that is set and not waited for.
    """
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
                later = flag.first.number - race.first.number
                found.append(((later < 0, abs(later)), group))
    return min(found, key=lambda one: one[0])[1] if found else None
