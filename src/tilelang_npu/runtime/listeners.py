"""Who is told that a kernel was compiled or has run: the command line, the profiler, tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilelang_npu.runtime.checking import Checker
    from tilelang_npu.runtime.kernel import JITKernel
    from tilelang_npu.runtime.sanitizer import Sanitizer
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.sanitizer.findings import Finding
    from tilelang_npu.simulator.sanitizer.numerics import NumberFinding

__all__ = ["Record", "Tally", "are_sanitized", "checker", "clock_us", "compiled", "kernels", "launched", "record"]


@dataclass(eq=False)
class Tally:
    """The runs of one kernel.

    Attributes:
        kernel: the kernel.
        last: its last run; of a kernel with several ``T.Kernel`` all launches of the call.
        count: how often it ran.
        total_us: modelled time of all runs.
        findings: what the sanitizer found in them, each cause once.
        numbers: what was seen of the numbers, each line and kind from the first run that shows it.
    """

    kernel: JITKernel
    last: AnyLaunch
    count: int = 0
    total_us: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    numbers: dict[object, NumberFinding] = field(default_factory=dict)


@dataclass(eq=False)
class Record:
    """What happened while it was open.

    Attributes:
        kernels: kernels that were compiled or taken from the cache, in order, each once.
        tallies: the runs of each kernel, in the order of first runs.
        sanitizer: looks for hazards in every run; None where nobody asked for that.
        checker: looks at kernels in place of running them; None where they run.
        thread: whose kernels these are; None for those of all threads.
        each: is called with every run, while its events are there.
    """

    kernels: list[JITKernel] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)
    sanitizer: Sanitizer | None = None
    checker: Checker | None = None
    thread: int | None = None
    each: Callable[[JITKernel, AnyLaunch], None] | None = None

    def milliseconds(self) -> float:
        """Modelled time of all runs together."""
        return sum(tally.total_us for tally in self.tallies) / 1000

    def error(self) -> float | None:
        """The error of ``milliseconds``, as a share; None where that of a kernel is not known."""
        from tilelang_npu.simulator.result.call_launches import mean_error

        return mean_error((tally.total_us, tally.last.error) for tally in self.tallies)


_OPEN: list[Record] = []
_LOCK = threading.Lock()
"""For what the records hold, and the clock."""


def _heard() -> list[Record]:
    """The open records of what the calling thread does."""
    return [opened for opened in list(_OPEN) if opened.thread in (None, threading.get_ident())]


class _Clock:
    """Modelled microseconds of every run in this process so far, whichever thread asked for it."""

    now = 0.0


def clock_us() -> float:
    """A clock of the device: the modelled time of all runs so far, in microseconds. It stands still between them."""
    return _Clock.now


@contextmanager
def record(*, sanitizer: Sanitizer | None = None, checker: Checker | None = None, every_thread: bool = False,
           each: Callable[[JITKernel, AnyLaunch], None] | None = None) -> Iterator[Record]:
    """Collect the kernels that are compiled and run inside the ``with``.

    Args:
        sanitizer: looks for races and broken flag protocols in every run.
        checker: looks at kernels in place of running them.
        every_thread: also those of other threads.
        each: is called with every kernel that has run and its launch.
    """
    thread = None if every_thread else threading.get_ident()
    opened = Record(sanitizer=sanitizer, checker=checker, thread=thread, each=each)
    _OPEN.append(opened)
    try:
        yield opened
    finally:
        _OPEN.remove(opened)


def compiled(kernel: JITKernel) -> None:
    """Tell the open records about a kernel, unless it runs as Python."""
    if kernel.is_interpreted:
        return
    with _LOCK:
        for opened in _heard():
            if all(kernel is not other for other in opened.kernels):
                opened.kernels.append(kernel)


def kernels() -> list[JITKernel]:
    """Those of the innermost open record so far."""
    return _OPEN[-1].kernels if _OPEN else []


def launched(kernel: JITKernel, launch: AnyLaunch) -> None:
    """Tell the open records about a run. A record keeps the last run of a kernel; a run's events take memory."""
    time_us = launch.time_us
    with _LOCK:
        _Clock.now += time_us
    listening = _heard()
    if not listening:
        for number in launch.numbers:
            from tilelang_npu.runtime.log import logger

            logger.warning("%s: %s", kernel.name, number)
    for opened in listening:
        found = [] if opened.sanitizer is None else opened.sanitizer.judge_all(launch, kernel.prim_func)
        with _LOCK:
            _note(opened, kernel, launch, time_us, found)
            if opened.each is not None:
                opened.each(kernel, launch)


def _note(opened: Record, kernel: JITKernel, launch: AnyLaunch, time_us: float, found: list[Finding]) -> None:
    from tilelang_npu.simulator.sanitizer.findings import merged

    tally = next((tally for tally in opened.tallies if tally.kernel is kernel), None)
    if tally is None:
        tally = Tally(kernel, launch)
        opened.tallies.append(tally)
    tally.last = launch
    tally.count += 1
    tally.total_us += time_us
    for number in launch.numbers:
        tally.numbers.setdefault(number.key, number)
    if found:
        tally.findings = merged([*tally.findings, *found])


def are_sanitized() -> bool:
    """Whether somebody looks for hazards in every run and will tell."""
    return any(opened.sanitizer is not None for opened in _heard())


def checker() -> Checker | None:
    """Who looks at kernels in place of running them; None where they run."""
    return next((opened.checker for opened in reversed(_heard()) if opened.checker is not None), None)
