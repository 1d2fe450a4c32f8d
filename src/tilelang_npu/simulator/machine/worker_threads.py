"""Threads that compute a launch: the thread limit of BLAS, the switch interval of the interpreter, and worker threads."""

from __future__ import annotations

import os
import sys
import threading
from _thread import start_new_thread
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from threadpoolctl import ThreadpoolController

Setting = TypeVar("Setting")
_ThreadCounts = list[tuple[Any, int]]
"""BLAS libraries, each with its number of threads."""
SOON = 5e-6
"""Switch interval in seconds while several threads compute a launch. If NumPy calls take about as long as the system takes to
wake a thread, a waiting thread finds the interpreter taken again each time it wakes, until the interval has passed. With the
default of 5 ms, one thread then computes instead of two."""


class _OwnUses(threading.local):
    """How many uses of a setting the current thread has begun, and the earlier settings of libraries with one per thread."""

    count = 0
    before: _ThreadCounts = []


class _ProcessSetting(Generic[Setting]):
    """A setting of the process that is changed from the first use that begins until the last one that is active ends.

    Args:
        change: changes the setting, and returns its earlier value.
        restore: sets an earlier value.
    """

    def __init__(self, change: Callable[[], Setting], restore: Callable[[Setting], object]) -> None:
        self._change, self._restore = change, restore
        self._lock = threading.Lock()
        self._count = 0
        self._before: list[Setting] = []
        self.own = _OwnUses()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._continue_after_fork)

    def begin(self) -> None:
        with self._lock:
            if self._count == 0:
                self._before = [self._change()]
            self._count += 1
        self.own.count += 1

    def end(self) -> None:
        self.own.count -= 1
        with self._lock:
            self._count -= 1
            self._restore_if_unused()

    def _continue_after_fork(self) -> None:
        """Keeps only the uses of the thread that forked: the others do not run in the child process."""
        self._lock = threading.Lock()
        self._count = self.own.count
        self._restore_if_unused()

    def _restore_if_unused(self) -> None:
        if self._count == 0 and self._before:
            self._restore(self._before.pop())


# -- BLAS --------------------------------------------------------------------------------------------------------------


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """Returns the BLAS libraries with a number of threads for the process, and those with one for each thread (OpenMP)."""
    found: tuple[list[Any], list[Any]] = [], []
    for library in ThreadpoolController().lib_controllers:
        if library.user_api == "blas":
            found[_has_controlling_thread(library) and library.threading_layer == "openmp"].append(library)
    return found


def _has_controlling_thread(library: Any) -> bool:
    """Whether only the thread that first set the number may change it, until it gives up control (threadpoolctl from 3.8
    on)."""
    return hasattr(library, "clear_controlling_thread")


def _set_thread_counts(counts: _ThreadCounts) -> None:
    """Sets numbers of threads, whichever thread has set them before."""
    for library, count in counts:
        if _has_controlling_thread(library):
            library.clear_controlling_thread(force=True)
        library.set_num_threads(count)
        if _has_controlling_thread(library):
            library.clear_controlling_thread()


def _limit(libraries: list[Any]) -> _ThreadCounts:
    """Limits libraries to one thread, and returns their earlier numbers."""
    before = [(library, library.get_num_threads()) for library in libraries]
    _set_thread_counts([(library, 1) for library, _ in before])
    return before


_BLAS_LIMIT = _ProcessSetting(lambda: _limit(_libraries()[0]), _set_thread_counts)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limits BLAS to one thread; each thread that computes must enter it.

    Many small products are slower on many threads than on one, by a factor of hundred on a busy machine.
    """
    own = _BLAS_LIMIT.own
    if own.count == 0:
        own.before = _limit(_libraries()[1])
    _BLAS_LIMIT.begin()
    try:
        yield
    finally:
        _BLAS_LIMIT.end()
        if own.count == 0:
            _set_thread_counts(own.before)


# -- the interpreter ---------------------------------------------------------------------------------------------------


def _shorten_switch_interval() -> float:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SOON)
    return before


_SWITCH_INTERVAL = _ProcessSetting(_shorten_switch_interval, sys.setswitchinterval)


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Makes threads that compute a launch release the interpreter soon after another thread requests it."""
    _SWITCH_INTERVAL.begin()
    try:
        yield
    finally:
        _SWITCH_INTERVAL.end()


# -- workers -----------------------------------------------------------------------------------------------------------

Ended = SimpleQueue[BaseException | None]
"""Receives from each worker its error, or None, when it is done."""


@contextmanager
def helped(works: Sequence[Callable[[], object]]) -> Iterator[None]:
    """Runs each work in a new thread, and waits for all of them at the end.

    If the system cannot start as many threads, the caller has to do the rest. Threads are not kept for later launches: the
    system starts a new thread on the least busy processor, but wakes a waiting one on the processor of the thread that wakes
    it.

    Raises:
        BaseException: the error of a worker, if the body raised none.
    """
    ended: Ended = SimpleQueue()
    begun = 0
    failed: list[BaseException | None] = []
    try:
        with suppress(RuntimeError):
            for work in works:
                start_new_thread(_help, ([work], ended))  # threading.Thread.start would wait until the thread runs
                begun += 1
        yield
    finally:
        failed += [ended.get() for _ in range(begun)]
    for error in failed:
        if error is not None:
            raise error


def _help(given: list[Callable[[], object]], ended: Ended) -> None:
    failed: BaseException | None = None
    try:
        given.pop()()  # popped, so that this frame does not keep the launch's arrays alive
    except BaseException as error:  # noqa: BLE001 - the launch raises it
        failed = error
    ended.put(failed)
