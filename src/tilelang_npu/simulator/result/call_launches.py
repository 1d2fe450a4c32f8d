"""The launches of one call: a kernel with several ``T.Kernel`` is launched once for each, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.errors import TileError, door
from tilelang_npu.simulator.result import JsonObject, report
from tilelang_npu.simulator.result.launch_result import Launch
from tilelang_npu.simulator.result.time_split import Split
from tilelang_npu.target import Chip

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.profile.launch_profile import Profile
    from tilelang_npu.simulator.sanitizer.hazard import Hazard
    from tilelang_npu.simulator.sanitizer.numerics import NumberFinding


@door
@dataclass(frozen=True, repr=False)
class Launches:
    """The launches of one call: each begins when all blocks of the one before have ended.

    Attributes:
        name: the kernel's name.
        parts: the launches, in order.
    """

    name: str
    parts: tuple[Launch, ...]

    @property
    def time_us(self) -> float:
        """Microseconds of all launches."""
        return sum(part.time_us for part in self.parts)

    @property
    def launch_us(self) -> float:
        """Microseconds of ``time_us`` in which no block runs."""
        return sum(part.launch_us for part in self.parts)

    @property
    def error(self) -> float | None:
        """The error of ``time_us``: the mean of the launches' errors, weighted by their times; None if one is unknown."""
        return mean_error((part.time_us, part.error) for part in self.parts)

    @property
    def split(self) -> Split:
        """The parts of ``time_us``, summed over the launches."""
        return Split.together(part.split for part in self.parts)

    @property
    def cycles(self) -> float:
        """Cycles of all launches, without the time in which no block runs."""
        return sum(part.cycles for part in self.parts)

    @property
    def blocks(self) -> int:
        """Number of blocks of all launches."""
        return sum(part.blocks for part in self.parts)

    @property
    def hazards(self) -> list[Hazard]:
        """The hazards of all launches. Launches are ordered, so accesses of different launches are no race."""
        return [hazard for part in self.parts for hazard in part.hazards]

    @property
    def numbers(self) -> list[NumberFinding]:
        """The numerical faults of all launches, if an observer looked for them."""
        return [number for part in self.parts for number in part.numbers]

    @property
    def may_be_stale(self) -> bool:
        """See ``Launch.may_be_stale``."""
        return any(part.may_be_stale for part in self.parts)

    def stale(self) -> Hazard | None:
        """See ``Launch.stale``."""
        return next((found for part in self.parts if (found := part.stale()) is not None), None)

    def writes(self, argument: int) -> NDArray[np.bool_]:
        """Returns which elements of a GM argument any of the launches wrote; see ``Launch.writes``."""
        return written(self.parts, argument)

    def trace(self) -> JsonObject:
        """Returns the timelines, one after the other; see ``Launch.trace``."""
        facts = [part.trace()["otherData"] for part in self.parts]
        return {"traceEvents": list(in_a_row((part, f"{part.name} ") for part in self.parts)), "displayTimeUnit": "ns",
                "otherData": {**facts[0], "kernel": self.name, "blocks": self.blocks,
                              "time_us": self.time_us, "launch_us": self.launch_us,
                              "left_out": sum(fact["left_out"] for fact in facts)}}

    def plot(self, block: int = 0, axes: Any = None) -> Any:
        """Draws the timeline of a block with matplotlib; see ``Launch.plot``.

        Args:
            block: number of the block, counted through all launches.
            axes: the axes to draw in; None makes a figure.

        Returns:
            The axes.

        Raises:
            TileError: T412 matplotlib is not installed, or there is no such block.
        """
        if not 0 <= block < self.blocks:
            raise TileError(f"there is no block {block}: the launches have {self.blocks}", code="T412")
        for part in self.parts:
            if block < part.blocks:
                break
            block -= part.blocks
        return part.plot(block, axes)

    def retimed(self, chip: Chip) -> Launches:
        """Returns these launches with the times of another chip; see ``Launch.retimed``."""
        return Launches(self.name, tuple(part.retimed(chip) for part in self.parts))

    def profile(self) -> Profile:
        """Returns the profile of all launches; see ``Launch.profile``."""
        from tilelang_npu.simulator.result.profile.launch_profile import Profile

        return Profile(self)

    def summary(self, name: str | None = None) -> str:
        """Returns five lines for each launch, and their total time."""
        time = f"{report.time_text(self.time_us, self.error)}: {self.split}"
        total = f"{name or self.name}: {len(self.parts)} launches one after the other, {time}"
        return "\n\n".join([*(part.summary() for part in self.parts), total])

    def to_dict(self) -> JsonObject:
        """Returns the launches as data for JSON: docs/accuracy.md lists the keys."""
        return report.call_data(self)

    def __repr__(self) -> str:
        time = report.time_text(self.time_us, self.error)
        return f"<{self.name}: {len(self.parts)} launches, {time} on {self.parts[0].chip.name}>"


AnyLaunch = Launch | Launches
"""The result of a call: one launch, or several."""


def mean_error(timed: Iterable[tuple[float, float | None]]) -> float | None:
    """Returns the error of a sum of times with known errors, if all are too long or all too short; None if one is unknown."""
    total = error = 0.0
    for us, own in timed:
        if own is None:
            return None
        total += us
        error += us * own
    return error / total if total else None


def joined(name: str, parts: Sequence[Launch]) -> AnyLaunch:
    """Returns the launches of a call of a kernel; a single launch as itself."""
    return parts[0] if len(parts) == 1 else Launches(name, tuple(parts))


def written(parts: Sequence[Launch], argument: int) -> NDArray[np.bool_]:
    """Returns which elements of a GM argument some launches wrote."""
    found = parts[0].writes(argument)
    for part in parts[1:]:
        found = found | part.writes(argument)
    return found


def in_a_row(launches: Iterable[tuple[AnyLaunch, str]]) -> Iterator[JsonObject]:
    """Yields the events of the timelines of some launches, one after the other, each on its own tracks.

    Args:
        launches: each with a prefix for the names of its tracks.
    """
    start, processes = 0.0, 0
    for launch, prefix in launches:
        events = launch.trace()["traceEvents"]
        for event in events:
            moved = {**event, "pid": event["pid"] + processes}
            if "ts" in event:
                moved["ts"] = event["ts"] + start
            if event["name"] == "process_name":
                moved["args"] = {"name": prefix + event["args"]["name"]}
            yield moved
        start += launch.time_us
        processes += 1 + max((event["pid"] for event in events), default=0)
