"""``Launches``, the result of a call with several launches: a kernel with several ``T.Kernel`` is launched once for each of
them, one launch after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.errors import TileError, door
from tilelang_npu.simulator.result import JsonObject, report
from tilelang_npu.simulator.result.launch_result import L2State, Launch
from tilelang_npu.simulator.result.time_split import Split
from tilelang_npu.target import Chip

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.profile.launch_profile import Profile
    from tilelang_npu.simulator.sanitizer.hazard import Hazard
    from tilelang_npu.simulator.sanitizer.numerics import NumberFinding


@door
@dataclass(frozen=True, repr=False)
class Launches:
    """The launches of one call of a kernel with several ``T.Kernel``. Each launch begins when all blocks of the previous launch
    have ended.

    Attributes:
        name: the name of the kernel.
        parts: the launches, in order.
        workspaces: the positions, among the user's arguments, of arrays that the call allocated and does not return.
    """

    name: str
    parts: tuple[Launch, ...]
    workspaces: tuple[int, ...] = ()

    @property
    def time_us(self) -> float:
        """The modelled duration of all launches together in microseconds."""
        return sum(part.time_us for part in self.parts)

    @property
    def launch_us(self) -> float:
        """The launch overheads of all launches together in microseconds, in which no block runs."""
        return sum(part.launch_us for part in self.parts)

    @property
    def error(self) -> float | None:
        """The error of ``time_us`` as a share of ``time_us``: the mean of the errors of the launches, weighted by their times.
        None if the error of a launch is unknown."""
        return mean_error((part.time_us, part.error) for part in self.parts)

    @property
    def split(self) -> Split:
        """The division of ``time_us`` into launch overhead, ramp-up, steady state and tail, summed over the launches."""
        return Split.together(part.split for part in self.parts)

    @property
    def cycles(self) -> float:
        """The cycles of all launches together, without launch overhead."""
        return sum(part.cycles for part in self.parts)

    @property
    def blocks(self) -> int:
        """The number of blocks of all launches together."""
        return sum(part.blocks for part in self.parts)

    @property
    def hazards(self) -> list[Hazard]:
        """The hazards of all launches. Accesses of different launches are no race, because the launches run in order."""
        return [hazard for part in self.parts for hazard in part.hazards]

    @property
    def numbers(self) -> list[NumberFinding]:
        """The numerical faults that an observer found in the launches; empty if there was no observer."""
        return [number for part in self.parts for number in part.numbers]

    @property
    def may_be_stale(self) -> bool:
        """Whether an op of a launch possibly reads uninitialised bytes."""
        return any(part.may_be_stale for part in self.parts)

    def stale(self) -> Hazard | None:
        """Returns a read of uninitialised bytes, or of bytes of another buffer, on which a result of a launch depends; None if
        there is no such read. See ``Launch.stale``."""
        return next((found for part in self.parts if (found := part.stale()) is not None), None)

    def writes(self, argument: int) -> NDArray[np.bool_]:
        """Returns a mask, in the shape of an array argument, of the elements that any of the launches wrote.

        Args:
            argument: the position of the array among the user's arguments.
        """
        return written(self.parts, argument)

    def trace(self) -> JsonObject:
        """Returns the timelines of the launches, one after the other, in the format of ``Launch.trace``."""
        facts = [part.trace()["otherData"] for part in self.parts]
        return {"traceEvents": list(in_a_row((part, f"{part.name} ") for part in self.parts)), "displayTimeUnit": "ns",
                "otherData": {**facts[0], "kernel": self.name, "blocks": self.blocks,
                              "time_us": self.time_us, "launch_us": self.launch_us,
                              "left_out": sum(fact["left_out"] for fact in facts)}}

    def plot(self, block: int = 0, axes: Any = None) -> Any:
        """Draws the timeline of a block with matplotlib; see ``Launch.plot``.

        Args:
            block: the number of the block, counted over all launches in order.
            axes: the matplotlib axes to draw in; None makes a new figure.

        Returns:
            The axes.

        Raises:
            TileError: T412, matplotlib is not installed, or there is no such block.
        """
        if not 0 <= block < self.blocks:
            raise TileError(f"there is no block {block}: the launches have {self.blocks} blocks", code="T412",
                            help=f"give a number from 0 to {self.blocks - 1}")
        for part in self.parts:
            if block < part.blocks:
                break
            block -= part.blocks
        return part.plot(block, axes)

    def retimed(self, chip: Chip | None = None, *, l2_state: L2State | None = None) -> Launches:
        """Returns these launches, timed on another chip, or with another state of L2; the kernel does not run again. See
        ``Launch.retimed``."""
        return Launches(self.name, tuple(part.retimed(chip, l2_state=l2_state) for part in self.parts),
                        self.workspaces)

    def profile(self) -> Profile:
        """Returns the profile of all launches together; see ``Launch.profile``."""
        from tilelang_npu.simulator.result.profile.launch_profile import Profile

        return Profile(self)

    def summary(self, name: str | None = None) -> str:
        """Returns the summary of each launch, and a line with their total time.

        Args:
            name: the kernel's name in that line; None for ``name``.
        """
        time = f"{report.time_text(self.time_us, self.error)}: {self.split}"
        total = f"{name or self.name}: {len(self.parts)} launches one after the other, {time}"
        return "\n\n".join([*(part.summary() for part in self.parts), total])

    def to_dict(self) -> JsonObject:
        """Returns the results as a dict that JSON can hold; docs/accuracy.md lists the keys."""
        return report.call_data(self)

    def __repr__(self) -> str:
        time = report.time_text(self.time_us, self.error)
        return f"<{self.name}: {len(self.parts)} launches, {time} on {self.parts[0].chip.name}>"


AnyLaunch = Launch | Launches
"""The result of a call: one launch, or several."""


def mean_error(timed: Iterable[tuple[float, float | None]]) -> float | None:
    """Returns the error of a sum of modelled times as a share of the sum.

    This assumes the worst case for a sum, that all times are too long or that all times are too short.

    Args:
        timed: for each time, a pair of the time in microseconds and its error as a share of the time (None if unknown).

    Returns:
        the mean of the errors, weighted by the times; None if an error is unknown or the sum is 0.
    """
    total = error = 0.0
    for us, own in timed:
        if own is None:
            return None
        total += us
        error += us * own
    return error / total if total else None


def joined(name: str, parts: Sequence[Launch], workspaces: Iterable[int] = ()) -> AnyLaunch:
    """Returns the result of a call: the ``Launch`` if there is only one, otherwise a ``Launches`` object.

    Args:
        name: the name of the kernel.
        parts: the launches of the call, in order; at least one.
        workspaces: the positions, among the user's arguments, of arrays that the call allocated and does not return.
    """
    return parts[0] if len(parts) == 1 else Launches(name, tuple(parts), tuple(workspaces))


def written(parts: Sequence[Launch], argument: int) -> NDArray[np.bool_]:
    """Returns a mask, in the shape of an array argument, of the elements that any of some launches wrote.

    Args:
        parts: the launches; at least one.
        argument: the position of the array among the user's arguments.
    """
    found = parts[0].writes(argument)
    for part in parts[1:]:
        found = found | part.writes(argument)
    return found


def in_a_row(launches: Iterable[tuple[AnyLaunch, str]]) -> Iterator[JsonObject]:
    """Yields Chrome trace events of the timelines of several launches: in time one after the other, each on separate tracks.

    Args:
        launches: pairs of a launch and a prefix for the names of the launch's tracks.
    """
    start, processes, flows = 0.0, 0, 0
    for launch, prefix in launches:
        events = launch.trace()["traceEvents"]
        for event in events:
            moved = {**event, "pid": event["pid"] + processes}
            if "ts" in event:
                moved["ts"] = event["ts"] + start
            if "id" in event:
                moved["id"] = event["id"] + flows
            if event["name"] == "process_name":
                moved["args"] = {"name": prefix + event["args"]["name"]}
            yield moved
        start += launch.time_us
        flows += max((event["id"] for event in events if "id" in event), default=0)
        processes += 1 + max((event["pid"] for event in events), default=0)
