"""The parts of a launch's time: launch, ramp, steady, tail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from tilelang_npu.simulator.time.pipe_steps import PIPES

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch


class Split(NamedTuple):
    """Microseconds of the parts; their sum is the time.

    Attributes:
        launch: no block runs.
        ramp: until the busiest pipe has its first work, on the core that ends last.
        steady: that pipe works, or waits for work in flight.
        tail: a core has no block left, or the busiest pipe of the last core has no work.
    """

    launch: float = 0.0
    ramp: float = 0.0
    steady: float = 0.0
    tail: float = 0.0

    @classmethod
    def together(cls, parts: Iterable[Split]) -> Split:
        """Returns the sum of the parts of several launches."""
        return cls(*(sum(part) for part in zip(cls(), *parts, strict=True)))

    def __str__(self) -> str:
        return "   ".join(f"{name} {us:.1f}" for name, us in self._asdict().items()) + " us"


def split_of(launch: Launch) -> Split:
    """Returns the parts of a launch's time."""
    cycles = launch.cycles
    ramp, end = 0.0, cycles
    core, pipe, _ = launch.busiest
    if pipe:
        number = PIPES.index(pipe)
        ends = launch.core_cycles
        longest = ends.index(cycles)
        groups = launch.group_of_block[longest::launch.cores]
        ramp = min(timing[0] for timing in launch.at_work(groups[0], core, number))
        last = groups[-1]
        end = cycles - last.timing.cycles + max(timing[1] for timing in launch.at_work(last, core, number))
        end = max(ramp, min(end, *ends))
    us = launch.chip.microseconds
    return Split(launch.launch_us, us(ramp), us(end - ramp), us(cycles - end))
