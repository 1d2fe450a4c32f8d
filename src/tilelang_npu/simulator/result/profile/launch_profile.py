"""``Profile``, the profile of a call: what its time is spent on, its traffic, the limits of the chip, and the gain of possible
changes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tilelang_npu.charts import Picture, picture
from tilelang_npu.display import Report
from tilelang_npu.errors import Location, TileError, doors
from tilelang_npu.sharing import once, state_of
from tilelang_npu.simulator.result import JsonObject
from tilelang_npu.simulator.result.profile import svg_charts
from tilelang_npu.simulator.result.profile.advice import NOT_TRIED, Advice, Tried
from tilelang_npu.simulator.result.profile.comparison import Comparison, compare
from tilelang_npu.simulator.result.profile.core_balance import CoreBalance, core_balance
from tilelang_npu.simulator.result.profile.lost_time import LostTime, lost_time
from tilelang_npu.simulator.result.profile.moved_bytes import ArgumentBytes, PathBytes, argument_bytes, path_bytes
from tilelang_npu.simulator.result.profile.profile_page import page
from tilelang_npu.simulator.result.profile.profile_text import text
from tilelang_npu.simulator.result.profile.roofline import Roofline, roofline
from tilelang_npu.simulator.result.profile.time_breakdown import LaunchBreakdown, Row, launch_breakdown
from tilelang_npu.simulator.result.profile.time_parts import WORK, Reason, TimePart, grained, sorted_parts
from tilelang_npu.simulator.result.profile.what_if import WhatIf, what_if
from tilelang_npu.target import Chip, chip
from tilelang_npu.target.chip_data import CoreKind, Pipe

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.call_launches import AnyLaunch


@dataclass(frozen=True)
class PipeTimes:
    """The time of a call, divided by what a pipe does in it; in microseconds, averaged over the cores in use.

    Attributes:
        core: the kind of core, ``AIC`` or ``AIV``.
        pipe: the name of the pipe.
        parts: the parts of the call's time, each with its reason, the largest first. They add up to the time of the call.
    """

    core: CoreKind
    pipe: Pipe
    parts: tuple[TimePart, ...]

    @property
    def busy_us(self) -> float:
        """The microseconds in which the pipe has work in flight; for the scalar unit (``S``) also those in which it issues
        instructions."""
        own = WORK | {"issue"} if self.pipe == "S" else WORK
        return sum(part.us for part in self.parts if part.reason.kind in own)

    @property
    def stalls(self) -> tuple[TimePart, ...]:
        """The parts of the time in which the pipe has no work in flight."""
        own = WORK | {"issue"} if self.pipe == "S" else WORK
        return tuple(part for part in self.parts if part.reason.kind not in own)

    def to_dict(self) -> JsonObject:
        """Returns the times of the pipe as a dict that JSON can hold."""
        return {"core": self.core, "pipe": self.pipe, "busy_us": self.busy_us, "parts": [part.to_dict() for part in self.parts]}


@dataclass(frozen=True)
class LineTimes:
    """The time of a source line.

    Attributes:
        place: the source line; None for time that belongs to no line.
        us: the microseconds of the critical path that belong to the line. Over all lines they add up to the time of the call.
        work: the microseconds in which pipes execute ops of the line, by kind of core and pipe, averaged over the cores in use.
    """

    place: Location | None
    us: float
    work: Mapping[Row, float] = field(default_factory=dict)

    def to_dict(self) -> JsonObject:
        """Returns the times of the line as a dict that JSON can hold."""
        where = {"line": self.place.line, "file": self.place.file} if self.place is not None else {}
        return {**where, "us": self.us, "work": {f"{core} {pipe}": us for (core, pipe), us in sorted(self.work.items())}}


class Profile(Report):
    """The profile of a call: what its time is spent on, the bytes that it moves, and the changes that would make it faster.
    ``print(profile)`` shows all tables as text.

    Args:
        launch: the launch, or the launches, of the call.
        kernel: the name of the kernel; None for the name of the launch.
        try_edits: a function that compiles and times edited kernels; by default no edit is tried.
        is_of_generated_inputs: whether the launch ran on generated inputs, although its time depends on their elements.

    Attributes:
        launch: the launch, or the launches, of the call.
        kernel: the name of the kernel.
        chip: the name of the chip.
        is_of_generated_inputs: the argument of the same name.
    """

    def __init__(self, launch: AnyLaunch, kernel: str | None = None, try_edits: Callable[[], Tried] | None = None, *,
                 is_of_generated_inputs: bool = False) -> None:
        self.launch = launch
        self.is_of_generated_inputs = is_of_generated_inputs
        self._try_edits = try_edits
        self._tried: Tried | None = None
        self.kernel = kernel or launch.name
        self.chip = launch.parts[0].chip.name

    def __getstate__(self) -> JsonObject:
        return state_of(self) | {"_try_edits": None}  # compiling kernels is left to this process

    @property
    def cycles(self) -> float:
        """The cycles of the call, without launch overhead."""
        return self.launch.cycles

    @once
    def time_us(self) -> float:
        """The duration of the call in microseconds. It is rounded to about a picosecond, so that the parts in each table add up
        to exactly this value.
        """
        return grained(self.launch.time_us)

    @once
    def parts(self) -> tuple[LaunchBreakdown, ...]:
        """For each launch of the call, its time by reason (not rounded) and the times of its blocks."""
        return tuple(launch_breakdown(part) for part in self.launch.parts)

    @once
    def critical_path(self) -> tuple[TimePart, ...]:
        """The parts of the critical path, each with its reason, the largest first. They add up to ``time_us``.

        The critical path is the chain of ops from the start to the end of the call in which each op waited for the previous
        one.
        """
        return sorted_parts(_added(part.path for part in self.parts), self.time_us)

    @once
    def pipes(self) -> tuple[PipeTimes, ...]:
        """For each pipe of each kind of core, the parts of the call's time, each with its reason; they add up to
        ``time_us``."""
        rows = sorted({row for part in self.parts for row in part.pipes})
        found = []
        for row in rows:
            times = _added(part.pipes.get(row, {Reason("no work"): launch.time_us})
                           for part, launch in zip(self.parts, self.launch.parts, strict=True))
            found.append(PipeTimes(*row, sorted_parts(times, self.time_us)))
        return tuple(found)

    @once
    def lines(self) -> tuple[LineTimes, ...]:
        """The time of each source line, the largest part of the critical path first."""
        own: dict[Location | None, float] = defaultdict(float)
        for part in self.critical_path:
            own[part.reason.place] += part.us
        work: dict[Location | None, dict[Row, float]] = defaultdict(lambda: defaultdict(float))
        for one in self.parts:
            for (row, reason), us in one.work.items():
                work[reason.place][row] += us
        found = [LineTimes(place, own.get(place, 0.0), dict(work.get(place, {}))) for place in {**own, **work}]
        return tuple(sorted(found, key=lambda line: (-line.us, str(line.place))))

    @once
    def balance(self) -> tuple[CoreBalance, ...]:
        """For each launch of the call, how evenly its blocks use the cores, and what makes cores idle."""
        return tuple(core_balance(part) for part in self.launch.parts)

    @once
    def paths(self) -> tuple[PathBytes, ...]:
        """The bytes that each launch moves on each data path between two memories; the rows of the launches follow each
        other."""
        return tuple(row for part in self.launch.parts for row in path_bytes(part))

    @once
    def arguments(self) -> tuple[ArgumentBytes, ...]:
        """The bytes that each launch reads from and writes to each tensor in GM, and the minimum that it would need; the rows
        of the launches follow each other."""
        return tuple(row for part in self.launch.parts for row in argument_bytes(part))

    @once
    def roofline(self) -> Roofline:
        """The operations per second that the call achieves, and the limits that the chip sets."""
        return roofline(self.launch.parts)

    @once
    def what_if(self) -> tuple[WhatIf, ...]:
        """The time of the call if a part of the chip took no time or were twice as fast, the largest gain first. The recorded
        launches are timed again for each such change."""
        return tuple(sorted(what_if(self.launch), key=lambda one: (one.after, one.change)))

    @once
    def causes(self) -> tuple[LostTime, ...]:
        """The causes of lost time, each with the time of the call without the cause, the largest gain first."""
        return tuple(sorted(lost_time(self.launch, self.parts), key=lambda one: (one.after, one.cause)))

    @property
    def unrefuted_causes(self) -> tuple[LostTime, ...]:
        """The causes of lost time without those that the tried edits contradict, such as ``small tiles`` if the edits with
        larger tiles are slower. Reports show these causes. The first read tries edits, which takes seconds."""
        return tuple(one for one in self.causes if one.cause not in self.tried.refuted)

    @property
    def tried(self) -> Tried:
        """The edits of the kernel's source that were tried, and the reason if none of them makes the kernel faster."""
        if self._tried is None:
            self._tried = self._try_edits() if self._try_edits is not None else NOT_TRIED
        return self._tried

    @property
    def advice(self) -> tuple[Advice, ...]:
        """The edits of the kernel's source that make it faster, the largest gain first: each was compiled and timed, and gives
        the same results. The first read takes seconds.
        """
        return tuple(self.tried.advice)

    def on(self, other: Chip | str) -> Profile:
        """Returns the profile of the same launch timed on another chip. The kernel is not compiled again, so the blocks, the
        tiles and the waits stay the same.

        Args:
            other: the other chip, or its name.

        Raises:
            TileError: T701, unknown chip.
        """
        return Profile(self.launch.retimed(chip(other)), self.kernel)

    def compare(self, other: Profile) -> Comparison:
        """Returns the differences in time between this profile and another one, by source line, by reason and by pipe."""
        return compare(self, other)

    def to_dict(self) -> JsonObject:
        """Returns all tables of the profile as a dict that JSON can hold."""
        return {
            "kernel": self.kernel, "chip": self.chip, "time_us": self.time_us, "launch_us": self.launch.launch_us,
            "blocks": self.launch.blocks, "generated_inputs": self.is_of_generated_inputs,
            "critical_path": [part.to_dict() for part in self.critical_path],
            "pipes": [row.to_dict() for row in self.pipes],
            "lines": [row.to_dict() for row in self.lines],
            "paths": [row.to_dict() for row in self.paths],
            "arguments": [row.to_dict() for row in self.arguments],
            "roofline": self.roofline.to_dict(),
            "balance": [one.to_dict() for one in self.balance],
            "what_if": [one.to_dict() for one in self.what_if],
            "advice": [one.to_dict() for one in self.advice], "advice_note": self.tried.note,
            "causes": [one.to_dict() for one in self.unrefuted_causes],
        }

    def save_json(self, file: str | Path) -> None:
        """Writes ``to_dict()`` to a JSON file."""
        Path(file).write_text(json.dumps(self.to_dict(), indent=1) + "\n", encoding="utf-8")

    def html(self) -> str:
        """Returns the profile as a self-contained HTML page with the tables, a timeline, the use of the memories over time, a
        roofline, and the source with the time of each line."""
        return page([self])

    def save_html(self, file: str | Path) -> None:
        """Writes ``html()`` to a file."""
        Path(file).write_text(self.html(), encoding="utf-8")

    def picture(self, kind: str = "timeline") -> Picture:
        """Returns a picture of the profile. A notebook shows it; its method ``save(FILE)`` writes it to a file.

        Args:
            kind: ``cores`` for the blocks of all cores and waves over time, ``timeline`` for the pipes of the longest block
                over time, ``memory`` for the bytes in use in its on-chip memories over time, ``traffic`` for its bytes per
                second in GM over time, ``roofline``, or ``parts`` for the parts of the critical path.

        Raises:
            TileError: T412, there is no picture of this kind, or there is nothing to draw.
        """
        launch, parts = max(zip(self.launch.parts, self.parts, strict=True), key=lambda pair: pair[0].time_us)
        block = max(parts.blocks, key=lambda one: one.group.timing.cycles)
        makers: dict[str, Callable[[], str]] = {
            "cores": lambda: svg_charts.cores(launch),
            "timeline": lambda: svg_charts.timeline(launch, block), "memory": lambda: svg_charts.memory(launch, block),
            "traffic": lambda: svg_charts.traffic(launch, block), "roofline": lambda: svg_charts.roof(self.roofline),
            "parts": lambda: svg_charts.time_bar([(part.reason, part.us) for part in self.critical_path], self.time_us)}
        if kind not in makers:
            raise TileError(f"a profile has no picture {kind!r}", code="T412", help=f"give one of {', '.join(makers)}")
        drawn = makers[kind]()
        if not drawn.startswith("<svg"):
            raise TileError(f"{self.kernel}: {drawn.removeprefix('<p>').removesuffix('.</p>')}", code="T412",
                            help=f"give another kind: {', '.join(one for one in makers if one != kind)}")
        return picture(drawn, f"{self.kernel}, {kind}, {self.chip}")

    def __str__(self) -> str:
        return text(self)


def _added(parts: Iterable[Mapping[Reason, float]]) -> dict[Reason, float]:
    found: dict[Reason, float] = defaultdict(float)
    for one in parts:
        for reason, us in one.items():
            found[reason] += us
    return found


__all__ = ["LineTimes", "PipeTimes", "Profile"]
doors(globals())
