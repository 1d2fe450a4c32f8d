"""The modelled time of a measured kernel."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilelang_npu.simulator import Launch
from tilelang_npu.target import Chip

AS, WITHOUT = "TILELANG_NPU_AS", "TILELANG_NPU_WITHOUT"


@dataclass(frozen=True)
class Modelled:
    """The modelled times of a kernel.

    Attributes:
        us: the duration of the task, as a profiler would show it, in microseconds.
        bound: the bottleneck; empty for a changed chip, on which it would take longer than the times.
        kind: the class of the kernel.
        pipes: busy microseconds of each pipe, as a mean over the cores in use.
    """

    us: float
    bound: str
    kind: str
    pipes: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A measured kernel, written in this language.

    Attributes:
        kernel: compiles the kernel; its argument is the number of repeats, if the measured kernel is too long to simulate.
        counts: two numbers of repeats, from which the time for ``whole`` repeats is extrapolated linearly; empty if the kernel
            is simulated completely.
        whole: the number of repeats in the measured kernel.
        times: a factor: how often the measured kernel executes all of this.
        upstream: whether it was measured with the code of TileLang-Ascend's compilers (``run --as upstream``).
    """

    kernel: Callable[[int], Any]
    counts: tuple[int, int] | None = None
    whole: int = 0
    times: int = 1
    upstream: bool = False

    def launches(self) -> list[Launch]:
        """Traces the kernel without values: once, or for both numbers of repeats.

        It has as many blocks as the measured kernel, whose compiler does not make fewer of them.
        """
        settings = {AS: "upstream" if self.upstream else "", WITHOUT: "make-persistent"}
        before = {name: os.environ.get(name, "") for name in settings}
        os.environ.update(settings)
        try:
            return [self.kernel(count).trace() for count in self.counts or (0,)]
        finally:
            os.environ.update(before)

    def modelled(self, launches: Sequence[Launch], change: Callable[[Chip], Chip] | None = None) -> Modelled:
        """Returns the times of the launches, on the original or on a changed chip."""
        if change is not None:
            launches = [launch.retimed(change(launch.chip)) for launch in launches]
        if self.counts is None:
            return _of(launches[0], is_changed=change is not None)
        few, more = self.counts
        first, second = (_of(launch, is_changed=change is not None) for launch in launches)

        def along(start: float, end: float) -> float:
            return self.times * (end + (end - start) / (more - few) * (self.whole - more))

        pipes = {pipe: along(first.pipes[pipe], us) for pipe, us in second.pipes.items()}
        return Modelled(along(first.us, second.us), second.bound, second.kind, pipes)


def _of(launch: Launch, *, is_changed: bool) -> Modelled:
    busy: dict[str, float] = {}
    for shares in launch.pipes.values():  # Cube and Vector cores: a measurement has the pipes of one kind
        for pipe, share in shares.items():
            busy[pipe] = max(busy.get(pipe, 0.0), share * launch.chip.microseconds(launch.cycles))
    return Modelled(launch.time_us, "" if is_changed else launch.bound_by, launch.kind, busy)
