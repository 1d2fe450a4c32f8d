"""Threads that compute a launch: limits BLAS to one thread, shortens the interpreter's switch interval, runs worker threads."""

from __future__ import annotations

import os
import sys
import threading
from _thread import start_new_thread
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from queue import SimpleQueue
from typing import Generic, Protocol, TypeVar

from threadpoolctl import ThreadpoolController

Setting = TypeVar("Setting")


class _Library(Protocol):
    """The part of threadpoolctl's ``LibController`` that this module uses."""

    user_api: str
    threading_layer: str

    def get_num_threads(self) -> int: ...

    def set_num_threads(self, count: int) -> object: ...

    def clear_controlling_thread(self, *, force: bool = False) -> object: ...


_ThreadCounts = list[tuple[_Library, int]]
"""BLAS libraries, each with its number of threads."""
SOON = 5e-6
"""Switch interval in seconds while several threads compute a launch. If NumPy calls take about as long as the system takes to
wake a thread, a waiting thread finds the interpreter taken again each time it wakes, until the interval has passed. With the
default of 5 ms, one thread then computes instead of two."""


class _OwnUses(threading.local):
    """Per thread: the number of uses of a setting that are active, and the earlier settings of libraries that are per thread.

    Attributes:
        count: the number of uses that the current thread has begun and not ended.
        before: the libraries whose number of threads is a setting of each thread, with the earlier numbers.
    """

    count = 0
    before: _ThreadCounts = []


class _ProcessSetting(Generic[Setting]):
    """A setting of the process that stays changed while at least one thread uses the change.

    Args:
        change: changes the setting, and returns its earlier value. Called when the first use begins.
        restore: sets the earlier value. Called when the last use ends.
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
        """Forgets, in a forked child process, the uses of all threads but the one that forked: no other thread runs there."""
        self._lock = threading.Lock()
        self._count = self.own.count
        self._restore_if_unused()

    def _restore_if_unused(self) -> None:
        if self._count == 0 and self._before:
            self._restore(self._before.pop())


# -- BLAS --------------------------------------------------------------------------------------------------------------


@cache
def _libraries() -> tuple[list[_Library], list[_Library]]:
    """Returns the loaded BLAS libraries, in two lists.

    In the first list the number of threads is a setting of the process; in the second list (OpenMP) it is a setting of each
    thread.
    """
    found: tuple[list[_Library], list[_Library]] = [], []
    for library in ThreadpoolController().lib_controllers:
        if library.user_api == "blas":
            found[_has_controlling_thread(library) and library.threading_layer == "openmp"].append(library)
    return found


def _has_controlling_thread(library: _Library) -> bool:
    """Whether only the thread that first set a library's number of threads can change the number, until this thread gives up
    control. Libraries have this restriction from threadpoolctl 3.8 on.
    """
    return hasattr(library, "clear_controlling_thread")


def _set_thread_counts(counts: _ThreadCounts) -> None:
    """Sets the number of threads of each library, even if another thread has set it before."""
    for library, count in counts:
        if _has_controlling_thread(library):
            library.clear_controlling_thread(force=True)
        library.set_num_threads(count)
        if _has_controlling_thread(library):
            library.clear_controlling_thread()


def _limit(libraries: list[_Library]) -> _ThreadCounts:
    """Limits BLAS libraries to one thread, and returns the libraries with their earlier numbers of threads."""
    before = [(library, library.get_num_threads()) for library in libraries]
    _set_thread_counts([(library, 1) for library, _ in before])
    return before


_BLAS_LIMIT = _ProcessSetting(lambda: _limit(_libraries()[0]), _set_thread_counts)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limits BLAS to one thread while the body runs; each thread that computes must enter this context.

    Many small products are slower on many threads than on one, by a factor of a hundred on a busy machine.
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
    """Sets the interpreter's switch interval to ``SOON`` while the body runs.

    A thread that computes then releases the interpreter lock soon after another thread requests it.
    """
    _SWITCH_INTERVAL.begin()
    try:
        yield
    finally:
        _SWITCH_INTERVAL.end()


# -- workers -----------------------------------------------------------------------------------------------------------

Ended = SimpleQueue[BaseException | None]
"""A queue that receives one item from each worker at its end: its error, or None."""


@contextmanager
def helped(works: Sequence[Callable[[], object]]) -> Iterator[None]:
    """Runs functions in new threads while the body runs, and waits for all threads at the end.

    If the system cannot start as many threads, the remaining functions are not called, and the body must do their work. Threads
    are not kept for later launches: the system starts a new thread on the least busy processor, but wakes a waiting one on the
    processor of the thread that wakes it.

    Args:
        works: the functions, each of which runs in one thread.

    Raises:
        BaseException: the error of the first worker that failed, if the body raised none.
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
