"""Listeners: objects whose methods are called when a kernel was compiled and when it has run.

The command line, the profilers and the pytest plug-ins listen to the kernels of a script or test
(``runtime/jit/recording.py``).
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tilelang_npu.language.functions import PrimFunc
    from tilelang_npu.runtime.arguments.binding import BoundCall
    from tilelang_npu.runtime.checks.sanitizer import Sanitizer
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.sanitizer.findings import Finding

# What listeners get as a kernel is `Any`: the kernel's class imports this module, which cannot import it. Listeners state it.


class ListenedKernel(Protocol):
    """What is used here of a kernel."""

    name: str
    prim_func: PrimFunc

    @property
    def is_interpreted(self) -> bool: ...


class CallChecker(Protocol):
    """The interface of a static checker, which checks calls of kernels instead of running them."""

    def look_at(self, kernel: Any, call: BoundCall) -> AnyLaunch | None:
        """Checks a call, and returns the trace that has the call's times, or None if the check ended with an error."""


class Listener:
    """Base class of listeners.

    Attributes:
        thread: the identifier of the thread whose kernels are reported to the listener; None for the kernels of all threads.
        sanitizer: checks every run for hazards; None to skip this check.
        checker: checks calls statically instead of running them; None to run calls.
    """

    thread: int | None = None
    sanitizer: Sanitizer | None = None
    checker: CallChecker | None = None

    def on_compiled(self, kernel: Any) -> None:
        """Is called for every kernel that was compiled or taken from the cache."""

    def on_called(self, kernel: Any, call: BoundCall) -> None:
        """Is called before every run or checked call, with the call's arguments."""

    def on_launched(self, kernel: Any, launch: AnyLaunch, findings: list[Finding]) -> None:
        """Is called after every run or checked call, with the findings of the listener's sanitizer."""


_OPEN: list[Listener] = []
_LOCK = threading.Lock()
"""Held while a listener is told something and while the clock advances."""


def listeners() -> list[Listener]:
    """Returns the active listeners to which kernels of the calling thread are reported, the innermost last."""
    return [listener for listener in list(_OPEN) if listener.thread in (None, threading.get_ident())]


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Activates a listener: kernels that are compiled and run inside the ``with`` statement are reported to it."""
    _OPEN.append(listener)
    try:
        yield
    finally:
        _OPEN.remove(listener)


class _Clock:
    now_us = 0.0


_RAN = mmap.mmap(-1, 1)
"""One byte that this process shares with the processes that it forks: not 0 if a kernel has run in one of them."""


def clock_us() -> float:
    """Returns the simulated device's clock: the sum of the modelled times of all runs of this process so far, in microseconds.
    """
    return _Clock.now_us


def has_run() -> bool:
    """Returns whether a kernel has run in this process, or in one that this process has forked, such as a rank of a pod."""
    return _RAN[0] != 0


def tell_compiled(kernel: ListenedKernel) -> None:
    """Calls ``on_compiled`` of the active listeners for a kernel, unless the kernel runs in the interpreter."""
    if kernel.is_interpreted:
        return
    with _LOCK:
        for listener in listeners():
            listener.on_compiled(kernel)


def tell_called(kernel: Any, call: BoundCall) -> None:
    """Calls ``on_called`` of the active listeners for a call that is about to run."""
    for listener in listeners() if _OPEN else ():
        listener.on_called(kernel, call)


def tell_launched(kernel: ListenedKernel, launch: AnyLaunch) -> None:
    """Calls ``on_launched`` of the active listeners for a run, and advances the device's clock by the run's modelled time.

    Without a listener, the run's findings on NaN, infinities and lossy conversions are logged.
    """
    time_us = launch.time_us
    with _LOCK:
        _Clock.now_us += time_us
        _RAN[0] = 1
    listening = listeners()
    if not listening:
        for number in launch.numbers:
            from tilelang_npu.runtime.settings.log import logger  # loads logging, which a script may not need

            logger.warning("%s: %s", kernel.name, number)
    for listener in listening:
        findings = [] if listener.sanitizer is None else listener.sanitizer.judge_all(launch, kernel.prim_func)
        with _LOCK:
            listener.on_launched(kernel, launch, findings)


def are_sanitized() -> bool:
    """Whether an active listener checks every run for hazards."""
    return any(listener.sanitizer is not None for listener in listeners())


def active_checker() -> CallChecker | None:
    """Returns the static checker of the innermost active listener that has one; None if calls are to be run."""
    return next((listener.checker for listener in reversed(listeners()) if listener.checker is not None), None)
