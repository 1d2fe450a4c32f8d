"""The launches of one call: a kernel with several ``T.Kernel`` is launched once for each, one behind the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.errors import TileError, door
from tilelang_npu.simulator.result import as_data, report
from tilelang_npu.simulator.result.launch_result import Launch
from tilelang_npu.simulator.result.time_split import Split
from tilelang_npu.target import Chip

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.profile.launch_profile import Profile
    from tilelang_npu.simulator.sanitizer.finding import Hazard
    from tilelang_npu.simulator.sanitizer.number_faults import NumberFinding


@door
@dataclass(frozen=True, repr=False)
class Launches:
    """What the launches of one call took and did: one begins when all blocks of the one before have ended.

    Attributes:
        name: the kernel's name.
        parts: the launches, in order.
    """

    name: str
    parts: tuple[Launch, ...]

    @property
    def time_us(self) -> float:
        """Microseconds of all of them."""
        return sum(part.time_us for part in self.parts)

    @property
    def launch_us(self) -> float:
        """Microseconds of ``time_us`` in which no block runs."""
        return sum(part.launch_us for part in self.parts)

    @property
    def error(self) -> float | None:
        """The error of ``time_us``: the mean of the launches' errors by their times; None where one is not known."""
        return mean_error((part.time_us, part.error) for part in self.parts)

    @property
    def split(self) -> Split:
        """``time_us`` in its parts, those of all launches together."""
        return Split.together(part.split for part in self.parts)

    @property
    def cycles(self) -> float:
        """Cycles of all of them, without the launches themselves."""
        return sum(part.cycles for part in self.parts)

    @property
    def blocks(self) -> int:
        """Blocks of all of them."""
        return sum(part.blocks for part in self.parts)

    @property
    def hazards(self) -> list[Hazard]:
        """Those of each launch. What one leaves for the next is no race: there is an order between them."""
        return [hazard for part in self.parts for hazard in part.hazards]

    @property
    def numbers(self) -> list[NumberFinding]:
        """What was seen of the numbers, where somebody watched them."""
        return [number for part in self.parts for number in part.numbers]

    @property
    def may_be_stale(self) -> bool:
        """See ``Launch.may_be_stale``."""
        return any(part.may_be_stale for part in self.parts)

    def stale(self) -> Hazard | None:
        """See ``Launch.stale``."""
        return next((found for part in self.parts if (found := part.stale()) is not None), None)

    def writes(self, argument: int) -> NDArray[np.bool_]:
        """Which elements of a GM argument any of them wrote; see ``Launch.writes``."""
        return written(self.parts, argument)

    def trace(self) -> dict[str, Any]:
        """The timelines, one behind the other; see ``Launch.trace``."""
        facts = [part.trace()["otherData"] for part in self.parts]
        return {"traceEvents": list(in_a_row((part, f"{part.name} ") for part in self.parts)), "displayTimeUnit": "ns",
                "otherData": {**facts[0], "kernel": self.name, "blocks": self.blocks,
                              "time_us": self.time_us, "launch_us": self.launch_us,
                              "left_out": sum(fact["left_out"] for fact in facts)}}

    def plot(self, block: int = 0, axes: Any = None) -> Any:
        """The timeline of a block as a matplotlib picture; see ``Launch.plot``.

        Args:
            block: number of the block, counted on from one launch to the next.
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
        """What these launches would have taken on another chip; see ``Launch.retimed``."""
        return Launches(self.name, tuple(part.retimed(chip) for part in self.parts))

    def profile(self) -> Profile:
        """Where the time of all of them goes; see ``Launch.profile``."""
        from tilelang_npu.simulator.result.profile.launch_profile import Profile

        return Profile(self)

    def summary(self, name: str | None = None) -> str:
        """Each launch in five lines, and their time together."""
        time = f"{report.time_text(self.time_us, self.error)}: {self.split}"
        total = f"{name or self.name}: {len(self.parts)} launches one behind the other, {time}"
        return "\n\n".join([*(part.summary() for part in self.parts), total])

    def to_dict(self) -> dict[str, Any]:
        """The launches as data that JSON can hold: what docs/accuracy.md lists."""
        return as_data.of_launches(self)

    def __repr__(self) -> str:
        time = report.time_text(self.time_us, self.error)
        return f"<{self.name}: {len(self.parts)} launches, {time} on {self.parts[0].chip.name}>"


AnyLaunch = Launch | Launches
"""What a call does: one launch, or several."""


def mean_error(timed: Iterable[tuple[float, float | None]]) -> float | None:
    """The error of some times together, each with its own: as if all were too long, or all too short."""
    total = error = 0.0
    for us, own in timed:
        if own is None:
            return None
        total += us
        error += us * own
    return error / total if total else None


def joined(name: str, parts: Sequence[Launch]) -> AnyLaunch:
    """The launches of a call of a kernel; a single one is just that."""
    return parts[0] if len(parts) == 1 else Launches(name, tuple(parts))


def written(parts: Sequence[Launch], argument: int) -> NDArray[np.bool_]:
    """Which elements of a GM argument some launches, at least one, wrote."""
    found = parts[0].writes(argument)
    for part in parts[1:]:
        found = found | part.writes(argument)
    return found


def in_a_row(launches: Iterable[tuple[AnyLaunch, str]]) -> Iterator[dict[str, Any]]:
    """The events of the timelines of some launches, one behind the other; each on tracks of its own.

    Args:
        launches: each with what stands in front of the names of its tracks.
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
