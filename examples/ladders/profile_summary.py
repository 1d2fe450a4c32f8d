"""Summaries of the profile of a step, and whether the next step follows its first advice."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ladders import Step, Timed

OTHER_NUMBERS = "other numbers"
"""The cause that the profile gives for advice that changes a numeric argument of the factory, for example a tile size."""


@dataclass(frozen=True)
class ProfileSummary:
    """A summary of the profile of a step.

    Attributes:
        profile: the whole profile.
    """

    profile: Any

    @property
    def busiest_pipe(self) -> str:
        """The busiest pipe, its share of the time, and its longest stall."""
        row = max(self.profile.pipes, key=lambda row: row.busy_us)
        busy = f"{row.core} {row.pipe} busy {row.busy_us / self.profile.time_us:.0%}"
        if not row.stalls:
            return busy
        stall = row.stalls[0]
        return f"{busy}; {_stall_text(stall.reason)} {stall.us / self.profile.time_us:.0%}"

    @cached_property
    def advice(self) -> list[Any]:
        """The causes of lost time and the edits that were tried, the largest gain first."""
        return sorted([*self.profile.causes, *self.profile.advice], key=lambda one: (one.after, one.cause))

    @property
    def gains(self) -> str:
        """The causes of lost time and the edits that were tried, each with its gain, the largest first."""
        return "; ".join(f"{one.cause} {-one.gain:+.0%}" for one in self.advice) or "none"

    @property
    def first_advice(self) -> str:
        """The first advice with its estimated gain; empty if there is none."""
        if not self.advice:
            return ""
        one = self.advice[0]
        where = f" (`{one.place.source().strip()}`)" if one.place is not None else ""
        how = getattr(one, "how", "compiled")
        return f"{one.cause}{where}: {one.text}; {one.before:.1f} us would become {one.after:.1f} ({how})"

    def is_followed_by(self, step: Step) -> bool:
        """Whether a step follows the first advice: it removes the cause, or, if the advice is another numeric argument, changes
        this argument in the same direction."""
        if not self.advice:
            return False
        if self.advice[0].cause != OTHER_NUMBERS:
            return bool(self.advice[0].cause == step.removed_cause)
        found = re.match(r"(\w+)=(\d+) in place of (\d+)", self.advice[0].text)
        assert found is not None, self.advice[0].text
        number, new, old = found[1], int(found[2]), int(found[3])
        has = inspect.signature(step.factory()).parameters
        return number in has and (has[number].default > old if new > old else has[number].default < old)


def _stall_text(reason: Any) -> str:
    """Returns the text of a stall's reason, with the source of the statement in place of its line number."""
    where = f"line {reason.place.line}" if reason.place is not None else ""
    text = str(reason)
    return text.replace(where, f"(`{reason.place.source().strip()}`)") if where else text


def summarise_profile(timed: Timed) -> ProfileSummary:
    """Returns the summary of the profile of a timed launch, which ``print(kernel.profile())`` shows in full."""
    return ProfileSummary(timed.kernel.profile())
