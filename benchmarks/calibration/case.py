"""What is modelled of a measured kernel, and how."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilelang_npu.simulator import Launch
from tilelang_npu.target import Chip

AS = "TILELANG_NPU_AS"


@dataclass(frozen=True)
class Modelled:
    """What the simulator's model says of a kernel.

    Attributes:
        us: how long it takes, as a profiler would show the task.
        bound: the busiest pipe.
        kind: the class of kernels.
        pipes: microseconds that each pipe is busy, as a mean over the cores that take part.
    """

    us: float
    bound: str
    kind: str
    pipes: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A measured kernel as it is written here.

    Attributes:
        kernel: compiles it; gets how often it repeats what it does, where it is too long to be walked through whole.
        counts: two numbers of such repeats, from which the time of ``whole`` follows along a line; none, and it is whole.
        whole: repeats of the measured kernel.
        times: how often the measured kernel does all that.
        upstream: whether it was measured as TileLang-Ascend's compilers make it (``run --as upstream``).
    """

    kernel: Callable[[int], Any]
    counts: tuple[int, int] | None = None
    whole: int = 0
    times: int = 1
    upstream: bool = False

    def launches(self) -> list[Launch]:
        """What it does, without values: the whole of it, or both parts."""
        before = os.environ.get(AS)
        os.environ[AS] = "upstream" if self.upstream else ""
        try:
            return [self.kernel(count).trace() for count in self.counts or (0,)]
        finally:
            os.environ[AS] = before or ""

    def modelled(self, launches: Sequence[Launch], change: Callable[[Chip], Chip] | None = None) -> Modelled:
        """The times of its launches, on the chip as it is or with a change."""
        if change is not None:
            launches = [launch.retimed(change(launch.chip)) for launch in launches]
        if self.counts is None:
            return _of(launches[0])
        few, more = self.counts
        first, second = map(_of, launches)

        def along(start: float, end: float) -> float:
            return self.times * (end + (end - start) / (more - few) * (self.whole - more))

        pipes = {pipe: along(first.pipes[pipe], us) for pipe, us in second.pipes.items()}
        return Modelled(along(first.us, second.us), second.bound, second.kind, pipes)


def _of(launch: Launch) -> Modelled:
    busy: dict[str, float] = {}
    for shares in launch.pipes.values():  # of Cube and Vector cores: a measurement has the pipes of one kind
        for pipe, share in shares.items():
            busy[pipe] = max(busy.get(pipe, 0.0), share * launch.chip.microseconds(launch.cycles))
    return Modelled(launch.time_us, launch.bound_by, launch.kind, busy)
