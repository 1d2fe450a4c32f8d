"""Summaries of the profile of a step, and whether the next step follows its first advice."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ladders import Step, Timed

NUMBERS = "other numbers"
"""The cause of advice that was tried by compiling with another numeric argument of the factory."""


@dataclass(frozen=True)
class Said:
    """A summary of the profile of a step.

    Attributes:
        profile: the whole profile.
    """

    profile: Any

    @property
    def busiest(self) -> str:
        """The busiest pipe, its share of the time, and the reasons for the rest."""
        row = max(self.profile.pipes, key=lambda row: row.busy_us)
        busy = f"{row.core} {row.pipe} busy {row.busy_us / self.profile.time_us:.0%}"
        if not row.stalls:
            return busy
        stall = row.stalls[0]
        return f"{busy}; {_in_words(stall.reason)} {stall.us / self.profile.time_us:.0%}"

    @cached_property
    def advice(self) -> list[Any]:
        """The causes of lost time and the edits that were tried, the largest gain first."""
        return sorted([*self.profile.causes, *self.profile.advice], key=lambda one: (one.after, one.cause))

    @property
    def causes(self) -> str:
        """The causes of lost time and the edits that were tried, each with its gain, the largest first."""
        return "; ".join(f"{one.cause} {-one.gain:+.0%}" for one in self.advice) or "none"

    @property
    def first(self) -> str:
        """The first advice; empty if there is none."""
        if not self.advice:
            return ""
        one = self.advice[0]
        where = f" (`{one.place.source().strip()}`)" if one.place is not None else ""
        how = getattr(one, "how", "compiled")
        return f"{one.cause}{where}: {one.text}; {one.before:.1f} us would become {one.after:.1f} ({how})"

    def leads_to(self, before: Step, after: Step) -> bool:
        """Whether the next step follows the first advice: it removes the cause, or, if another number was advised, uses this
        number."""
        if not self.advice:
            return False
        if self.advice[0].cause != NUMBERS:
            return bool(self.advice[0].cause == after.cures)
        found = re.match(r"(\w+)=(\d+) in place of (\d+)", self.advice[0].text)
        assert found is not None, self.advice[0].text
        number, new, old = found[1], int(found[2]), int(found[3])
        has = inspect.signature(after.factory()).parameters
        return number in has and (has[number].default > old if new > old else has[number].default < old)


def _in_words(reason: Any) -> str:
    """Returns the text of a reason, with the statement in place of its line."""
    where = f"line {reason.place.line}" if reason.place is not None else ""
    said = str(reason)
    return said.replace(where, f"(`{reason.place.source().strip()}`)") if where else said


def said(timed: Timed) -> Said:
    """Returns the summary of the profile of a timed launch, which ``print(kernel.profile())`` shows."""
    return Said(timed.kernel.profile())
