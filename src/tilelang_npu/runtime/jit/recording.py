"""Records which kernels a script or a test compiles and runs, with their times and findings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilelang_npu.runtime.kernel import listeners
from tilelang_npu.runtime.kernel.listeners import CallChecker, Listener

if TYPE_CHECKING:
    from tilelang_npu.runtime.checks.sanitizer import Sanitizer
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.sanitizer.findings import Finding
    from tilelang_npu.simulator.sanitizer.numerics import NumberFinding


@dataclass(eq=False)
class Tally:
    """The recorded runs of one kernel.

    Attributes:
        kernel: the kernel.
        last: the launch of the last run; for a kernel with several ``T.Kernel``, all launches of the last call.
        count: the number of runs.
        total_us: the sum of the modelled times of all runs, in microseconds.
        findings: the sanitizer's findings in all runs; findings with the same cause are merged.
        numbers: the findings on NaN, infinities and lossy conversions, by line and kind, each from the first run that has it.
    """

    kernel: JITKernel
    last: AnyLaunch
    count: int = 0
    total_us: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    numbers: dict[object, NumberFinding] = field(default_factory=dict)


@dataclass(eq=False)
class Record(Listener):
    """A listener that records the kernels that are compiled and run; see :func:`record`.

    Attributes:
        kernels: the kernels that were compiled or taken from the cache, in this order, each once.
        tallies: the runs of each kernel that ran, in the order of first runs.
        sanitizer, checker, thread: see :class:`Listener`.
        each: a function that is called with the kernel and the launch after every run, while the launch still has its events;
            or None.
    """

    kernels: list[JITKernel] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)
    sanitizer: Sanitizer | None = None
    checker: CallChecker | None = None
    thread: int | None = None
    each: Callable[[JITKernel, AnyLaunch], None] | None = None

    def on_compiled(self, kernel: JITKernel) -> None:
        if all(kernel is not other for other in self.kernels):
            self.kernels.append(kernel)

    def on_launched(self, kernel: JITKernel, launch: AnyLaunch, findings: list[Finding]) -> None:
        """Adds a run to the kernel's tally. Only the last launch of a kernel is stored: its events take much memory."""
        tally = next((tally for tally in self.tallies if tally.kernel is kernel), None)
        if tally is None:
            tally = Tally(kernel, launch)
            self.tallies.append(tally)
        tally.last = launch
        tally.count += 1
        tally.total_us += launch.time_us
        for number in launch.numbers:
            tally.numbers.setdefault(number.key, number)
        if findings:
            from tilelang_npu.simulator.sanitizer.findings import merged

            tally.findings = merged([*tally.findings, *findings])
        if self.each is not None:
            self.each(kernel, launch)


@contextmanager
def record(*, sanitizer: Sanitizer | None = None, checker: CallChecker | None = None, every_thread: bool = False,
           each: Callable[[JITKernel, AnyLaunch], None] | None = None) -> Iterator[Record]:
    """Records the kernels that are compiled and run inside the ``with`` statement.

    Args:
        sanitizer: if given, checks every run for races and broken flag protocols.
        checker: if given, checks each call statically; the kernel then does not run.
        every_thread: whether to record the kernels of all threads, not only those of the calling thread.
        each: a function that is called with the kernel and the launch after every run.

    Yields:
        The record, which is filled while the body runs.
    """
    made = Record(sanitizer=sanitizer, checker=checker, thread=None if every_thread else threading.get_ident(), each=each)
    with listeners.listen(made):
        yield made


def kernels_so_far() -> list[JITKernel]:
    """Returns the kernels that the innermost open :func:`record` of the calling thread has recorded; none without a record."""
    return next((listener.kernels for listener in reversed(listeners.listeners()) if isinstance(listener, Record)), [])
