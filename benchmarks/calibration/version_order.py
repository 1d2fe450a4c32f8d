"""The rate at which the model orders two measured versions of a kernel correctly, by their modelled difference."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

LIMITS = (0.02, 0.05, 0.1, 0.2)
"""Modelled differences that separate the rows of the table."""


@dataclass(frozen=True)
class VersionPair:
    """Two measured versions of a kernel.

    Attributes:
        problem: what both versions compute, and from which sizes.
        measured: the measured times of both, in microseconds.
        modelled: the modelled times of both, in microseconds.
    """

    problem: str
    measured: tuple[float, float]
    modelled: tuple[float, float]

    @property
    def modelled_difference(self) -> float:
        """The modelled time that the faster version saves, relative to the slower one's."""
        return 1 - min(self.modelled) / max(self.modelled)

    @property
    def measured_difference(self) -> float:
        """The measured time that the faster version saves, relative to the slower one's."""
        return 1 - min(self.measured) / max(self.measured)

    @property
    def order(self) -> float:
        """1 if the same version is the faster one in both, 0 if not, and 0.5 if the modelled times are equal."""
        if self.modelled[0] == self.modelled[1]:
            return 0.5
        return float((self.modelled[0] < self.modelled[1]) == (self.measured[0] < self.measured[1]))


def version_pairs(measured: Mapping[str, float], modelled: Mapping[str, float], problems: Mapping[str, str]
                  ) -> Iterator[VersionPair]:
    """Yields all pairs of rows that have the same problem.

    Args:
        measured: the measured times in microseconds, by the name of the row.
        modelled: the modelled times in microseconds, by the name of the row.
        problems: the problem of each row that is a version, by the name of the row.
    """
    for one, other in combinations(problems, 2):
        if problems[one] == problems[other]:
            yield VersionPair(problems[one], (measured[one], measured[other]), (modelled[one], modelled[other]))


def grouped_pairs(pairs: Sequence[VersionPair]) -> Iterator[tuple[str, list[VersionPair]]]:
    """Yields the pairs by their modelled difference, with the range of differences in words."""
    ends = (0.0, *LIMITS, float("inf"))
    for low, high in zip(ends, ends[1:], strict=False):
        words = (f"below {high:.0%}" if low == 0 else f"above {low:.0%}" if high == float("inf") else
                 f"{low:.0%} to {high:.0%}").replace("%", " %")
        yield words, [one for one in pairs if low <= one.modelled_difference < high]


def table(pairs: Sequence[VersionPair]) -> str:
    """Returns the table of docs/accuracy.md."""
    lines = ["| modelled difference | pairs | problems | right order | measured difference, median |",
             "| --- | ---: | ---: | ---: | ---: |"]
    for words, group in grouped_pairs(pairs):
        if group:
            lines.append(f"| {words} | {len(group)} | {len({one.problem for one in group})}"
                         f" | {statistics.mean(one.order for one in group):.0%}"
                         f" | {statistics.median(one.measured_difference for one in group):.1%} |")
    return "\n".join(lines)
