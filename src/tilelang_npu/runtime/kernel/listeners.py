"""Listeners: objects that are told when a kernel was compiled and when it has run.

The command line, the profilers and the pytest plug-ins listen to the kernels of a script or test
(``runtime/jit/recording.py``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tilelang_npu.runtime.arguments.binding import BoundCall
    from tilelang_npu.runtime.checks.sanitizer import Sanitizer
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.simulator.sanitizer.findings import Finding

# Kernels are `Any` in this module: it is imported by the kernel's class and cannot import it. Listeners state the class.


class CallChecker(Protocol):
    """Checks calls in place of running them."""

    def look_at(self, kernel: Any, call: BoundCall) -> AnyLaunch | None:
        """Checks a call; returns the trace that has its times, or None if the check ended with an error."""


class Listener:
    """Base class of listeners.

    Attributes:
        thread: the thread whose kernels the listener is told of; None for the kernels of all threads.
        sanitizer: looks for hazards in every run; None if the listener does not want to know them.
        checker: checks calls in place of running them; None if calls run.
    """

    thread: int | None = None
    sanitizer: Sanitizer | None = None
    checker: CallChecker | None = None

    def on_compiled(self, kernel: Any) -> None:
        """Called for every kernel that was compiled or taken from the cache."""

    def on_launched(self, kernel: Any, launch: AnyLaunch, findings: list[Finding]) -> None:
        """Called after every run or checked call, with the findings of the listener's sanitizer."""


_OPEN: list[Listener] = []
_LOCK = threading.Lock()
"""Held while a listener is told something and while the clock advances."""


def listeners() -> list[Listener]:
    """Returns the listeners that are told what the calling thread does, the innermost last."""
    return [listener for listener in list(_OPEN) if listener.thread in (None, threading.get_ident())]


@contextmanager
def listen(listener: Listener) -> Iterator[None]:
    """Tells a listener of the kernels that are compiled and run inside the ``with``."""
    _OPEN.append(listener)
    try:
        yield
    finally:
        _OPEN.remove(listener)


class _Clock:
    now_us = 0.0


def clock_us() -> float:
    """Returns the sum of the modelled times of all runs of this process so far, in microseconds: a clock of the device."""
    return _Clock.now_us


def tell_compiled(kernel: Any) -> None:
    """Tells the listeners that a kernel is ready, unless it runs as Python."""
    if kernel.is_interpreted:
        return
    with _LOCK:
        for listener in listeners():
            listener.on_compiled(kernel)


def tell_launched(kernel: Any, launch: AnyLaunch) -> None:
    """Tells the listeners of a run, and advances the clock. Findings on numbers are logged if nobody listens."""
    time_us = launch.time_us
    with _LOCK:
        _Clock.now_us += time_us
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
    """Whether a listener looks for hazards in every run, and reports them."""
    return any(listener.sanitizer is not None for listener in listeners())


def active_checker() -> CallChecker | None:
    """Returns the innermost listener's checker of calls; None if calls run."""
    return next((listener.checker for listener in reversed(listeners()) if listener.checker is not None), None)
