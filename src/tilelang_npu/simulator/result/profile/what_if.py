"""``what_if``, which times a recorded launch again on changed chips: with parts that take no time or are twice as fast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from tilelang_npu.progress import shown
from tilelang_npu.simulator.machine.op_records import OpRecord
from tilelang_npu.simulator.result import JsonObject
from tilelang_npu.simulator.time.pipe_steps import CROSS_SET, CROSS_WAIT, PIPE, RUN, Change, ChangedExpansion, PipeStep
from tilelang_npu.target import Chip, LaunchTimes, Move
from tilelang_npu.target.chip_data import CoreKind, Pipe

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.call_launches import AnyLaunch
    from tilelang_npu.simulator.result.launch_result import Launch


@dataclass(frozen=True)
class WhatIf:
    """The effect of a hypothetical change of the chip on the duration of a call.

    Attributes:
        change: a description of the change, such as ``HBM free``.
        before: the duration of the call in microseconds.
        after: the duration with the change in microseconds.
    """

    change: str
    before: float
    after: float

    @property
    def gain(self) -> float:
        """The saved share of the duration, from 0 to 1; negative if the change makes the call slower."""
        return 1 - self.after / self.before

    def __str__(self) -> str:
        return f"{self.change:<26} {self.after:9.2f} us {100 * (self.after / self.before - 1):+6.1f} %"

    def to_dict(self) -> JsonObject:
        """Returns the effect as a dict that JSON can hold."""
        return {"change": self.change, "us": self.after, "gain": self.gain}


def hbm_free(chip: Chip) -> Chip:
    """Returns a copy of the chip on which L2 misses take no longer than L2 hits."""
    paths = {name: replace(path, move=path.near or path.move) for name, path in chip.paths.items()}
    return replace(chip, paths=paths, traffic=replace(chip.traffic, hbm_read=inf, hbm_write=inf))


def l2_free(chip: Chip) -> Chip:
    """Returns a copy of the chip whose L2 has unlimited bandwidth, answers all requests at once, and does not serialise atomic
    updates of one line.
    """
    return replace(chip, traffic=replace(chip.traffic, l2_read=inf, l2_write=inf, l2=inf, same_line=0.0, requests=inf,
                                         same_place=inf))


def links_twice_as_fast(chip: Chip) -> Chip:
    """Returns a copy of the chip whose links to other cards move twice the bytes per second, with the same latency."""
    links = chip.links
    return replace(chip, links=replace(links, write=2 * links.write, read=2 * links.read, write_all=2 * links.write_all,
                                       read_all=2 * links.read_all))


def no_launch(chip: Chip) -> Chip:
    """Returns a copy of the chip without launch overhead and without dispatch times of blocks."""
    return replace(chip, launch=LaunchTimes(kernel_us=0.0, mixed_us=0.0, vector_core_us=0.0, core_us=0.0, dispatch_us=0.0))


def larger_instructions(times: float, chip: Chip) -> Chip:
    """Returns a copy of the chip on which the fixed costs of instructions, copies and waits are divided by ``times``.

    On this chip, a kernel takes about as long as a kernel on the original chip with fewer and larger instructions, copies and
    waits: their number is divided by ``times``, and their sizes are multiplied by ``times``.
    """
    paths = {name: replace(path, move=_begun(times, path.move), near=_begun(times, path.near))
             for name, path in chip.paths.items()}
    unit, sync = chip.scalar, chip.sync
    return replace(chip, paths=paths,
                   vector={name: replace(rate, fixed=rate.fixed / times, issue=rate.issue / times)
                           for name, rate in chip.vector.items()},
                   scalar=replace(unit, alu=unit.alu / times, load=unit.load / times, store=unit.store / times,
                                  issue=unit.issue / times),
                   sync=replace(sync, event=sync.event / times, barrier=sync.barrier / times,
                             vector_barrier=sync.vector_barrier / times, handoff=sync.handoff / times))


def _begun(times: float, move: Move | None) -> Move | None:
    return move and replace(move, fixed=move.fixed / times, issue=move.issue / times)


def twice_as_fast(core: CoreKind, pipe: Pipe, chip: Chip) -> Chip:
    """Returns a copy of the chip on which one pipe takes half the cycles; HBM and L2 are unchanged.

    Args:
        core: the kind of core that has the pipe.
        pipe: the pipe; for ``S``, ``V`` and ``M`` the kind of core does not matter.
        chip: the chip.
    """
    if pipe == "S":
        unit = chip.scalar
        return replace(chip, scalar=replace(unit, alu=unit.alu / 2, load=unit.load / 2, store=unit.store / 2,
                                            issue=unit.issue / 2))
    if pipe == "V":
        return replace(chip, vector={name: replace(rate, slope16=rate.slope16 / 2, slope32=rate.slope32 / 2,
                                                   fixed=rate.fixed / 2, issue=rate.issue / 2)
                                     for name, rate in chip.vector.items()})
    if pipe == "M":
        cube = chip.cube
        return replace(chip, cube=replace(cube, k_step={kind: 2 * step for kind, step in cube.k_step.items()},
                                          overhead=cube.overhead / 2, latency=cube.latency / 2))
    paths = {name: replace(path, move=_halved(path.move), near=_halved(path.near))
             if (path.core, path.pipe) == (core, pipe) else path for name, path in chip.paths.items()}
    burst = chip.cube.burst / 2 if pipe == "MTE1" else chip.cube.burst
    return replace(chip, paths=paths, cube=replace(chip.cube, burst=burst))


def _halved(move: Move | None) -> Move | None:
    if move is None:
        return None
    return replace(move, fixed=move.fixed / 2, rate=2 * move.rate, floor=move.floor / 2, sustained=2 * move.sustained,
                   issue=move.issue / 2, row=move.row / 2)


def with_steps(launch: Launch, change: Change) -> Launch:
    """Returns a launch, timed again after ``change`` has changed or removed each of its steps."""
    return launch.retimed(expand=partial(ChangedExpansion, change))


def without_waits(record: OpRecord, step: PipeStep) -> PipeStep | None:
    """Returns the step if it executes work, otherwise None. As a change of steps, this removes all synchronisation."""
    return step if step.kind == RUN else None


def without_flags(record: OpRecord, step: PipeStep) -> PipeStep | None:
    """Returns None for a set of a flag between cores and for a wait for such a flag, otherwise the step.

    As a change of steps, this removes the synchronisation between cores.
    """
    return None if step.kind in (CROSS_SET, CROSS_WAIT) else step


def without_scalar_work(record: OpRecord, step: PipeStep) -> PipeStep | None:
    """Returns the step without the work of the scalar unit on single elements; None if the step consists of such work alone.

    As a change of steps, this removes the loads, stores and arithmetic of the scalar unit.
    """
    return None if step.kind == RUN and step.pipe == PIPE["S"] else step


def changes(launch: AnyLaunch) -> Mapping[str, Callable[[Launch], Launch]]:
    """Returns the hypothetical changes to try: for each description a function that returns a launch timed again with the
    change."""
    found: dict[str, Callable[[Launch], Launch]] = {
        "HBM free": partial(_on, hbm_free), "L2 free": partial(_on, l2_free),
        "no waits": lambda part: with_steps(part, without_waits), "no launch": partial(_on, no_launch)}
    if any(part.linked for part in launch.parts):
        found["links twice as fast"] = partial(_on, links_twice_as_fast)
    rows = {(core, pipe) for part in launch.parts for core, row in part.busy_cycles.items() for pipe in row}
    for core, pipe in sorted(rows):
        name = "scalar units" if pipe == "S" else f"{core} {pipe}"
        found[f"{name} twice as fast"] = partial(_on, partial(twice_as_fast, core, pipe))
    return found


def _on(change: Callable[[Chip], Chip], part: Launch) -> Launch:
    return part.retimed(change(part.chip))


def what_if(launch: AnyLaunch) -> Iterator[WhatIf]:
    """Yields the effect of each hypothetical change on the duration of a call."""
    tried = changes(launch)
    with shown("what if", len(tried), "changes") as step:
        for text, change in tried.items():
            yield WhatIf(text, launch.time_us, sum(change(part).time_us for part in launch.parts))
            step.done += 1
