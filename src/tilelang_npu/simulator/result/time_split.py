"""``Split``, the division of a launch's time into launch overhead, ramp-up, steady state and tail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from tilelang_npu.target.chip_data import PIPES

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch


class Split(NamedTuple):
    """The parts of a launch's duration in microseconds; their sum is ``Launch.time_us``.

    Attributes:
        launch: the launch overhead, in which no block runs.
        ramp: the time from the start of the first block until the busiest pipe starts its first work, on the core that ends
            last.
        steady: the time from the end of ``ramp`` to the start of ``tail``.
        tail: the time to the end of the last block, from the moment at which the first core has no more blocks or, if that is
            earlier, at which the busiest pipe has finished its work on the core that ends last.
    """

    launch: float = 0.0
    ramp: float = 0.0
    steady: float = 0.0
    tail: float = 0.0

    @classmethod
    def together(cls, parts: Iterable[Split]) -> Split:
        """Returns the sums of the parts over several launches."""
        return cls(*(sum(part) for part in zip(cls(), *parts, strict=True)))

    def __str__(self) -> str:
        return "   ".join(f"{name} {us:.1f}" for name, us in self._asdict().items()) + " us"


def split_of(launch: Launch) -> Split:
    """Returns the division of a launch's duration."""
    cycles = launch.cycles
    ramp, end = 0.0, cycles
    core, pipe, _ = launch.busiest
    if core and pipe:
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
