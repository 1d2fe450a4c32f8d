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
from typing import Any

from threadpoolctl import ThreadpoolController

_Numbers = list[tuple[Any, int]]
"""Libraries, each with the number of threads that it had."""


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """The BLAS libraries whose number the process shares, and those where each thread has its own."""
    found: tuple[list[Any], list[Any]] = [], []
    for library in ThreadpoolController().lib_controllers:
        if library.user_api == "blas":
            found[_gives_way(library) and library.threading_layer == "openmp"].append(library)
    return found


def _gives_way(library: Any) -> bool:
    """Whether numbers are taken only from the thread that first gave one, until that lets go (threadpoolctl from 3.8 on)."""
    return hasattr(library, "clear_controlling_thread")


def _set(library: Any, count: int) -> None:
    """Set the number, whoever set it before: what other threads are told without a word would be ignored."""
    if _gives_way(library):
        library.clear_controlling_thread(force=True)
    library.set_num_threads(count)
    if _gives_way(library):
        library.clear_controlling_thread()


def _limited(libraries: list[Any]) -> _Numbers:
    """Set libraries to one thread; what they had."""
    before = [(library, library.get_num_threads()) for library in libraries]
    _restore([(library, 1) for library, _ in before])
    return before


def _restore(numbers: _Numbers) -> None:
    for library, count in numbers:
        _set(library, count)


class _Own(threading.local):
    """Of a thread: how many of its runs are under way, and the numbers of its own that were before them."""

    inside = 0
    before: _Numbers = []


class _Limit:
    """One BLAS thread from the first run that begins until the last one that is under way ends, whoever began it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._own = _Own()
        self._before: _Numbers = []

    def enter(self) -> None:
        shared, own = _libraries()
        if self._own.inside == 0:
            self._own.before = _limited(own)
        self._own.inside += 1
        with self._lock:
            if self._inside == 0:
                self._before = _limited(shared)
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            self._end()
        self._own.inside -= 1
        if self._own.inside == 0:
            _restore(self._own.before)

    def forked(self) -> None:
        """In a process that was forked, only the thread that forked it is still running."""
        self._lock = threading.Lock()
        self._inside = self._own.inside
        self._end()

    def _end(self) -> None:
        if self._inside == 0:
            _restore(self._before)
            self._before = []


_LIMIT = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.forked)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BatchedInt small products on many threads are slower than on one, by a hundred times on a busy machine. Each thread that
    computes says so for itself.
    """
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()


SOON = 5e-6
"""Seconds. Where NumPy is busy for about as long as the system takes to wake a thread, who waits for the interpreter finds it
taken again each time that it wakes, until it insists: 5 ms by default, in which one thread computes in place of two."""


class _Turns:
    """Short turns from the first launch of several threads that begins until the last one that is under way ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 0.0

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(SOON)
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                sys.setswitchinterval(self._before)

    def forked(self) -> None:
        """In a process that was forked, only one thread is still running."""
        self._lock = threading.Lock()
        if self._inside:
            self._inside = 0
            sys.setswitchinterval(self._before)


_TURNS = _Turns()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_TURNS.forked)


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Threads that compute a launch together hand the interpreter over as soon as one asks."""
    _TURNS.enter()
    try:
        yield
    finally:
        _TURNS.leave()


Ended = SimpleQueue[BaseException | None]
"""Takes of each thread what went wrong, when it is done."""


@contextmanager
def helped(works: Sequence[Callable[[], object]]) -> Iterator[None]:
    """While this lasts, other threads do some work, each a part of it; it ends when they have.

    Where the system has no room for as many threads, there are fewer: what is inside does what nobody else has done.

    Raises:
        BaseException: what one of them raised, where nothing was raised inside.
    """
    ended: Ended = SimpleQueue()
    begun = 0
    failed: list[BaseException | None] = []
    try:
        with suppress(RuntimeError):
            for work in works:
                start_new_thread(_help, ([work], ended))  # threading's would wait here until the other one has begun
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
        given.pop()()  # so that nothing here has the launch's arrays any more when that goes on
    except BaseException as error:  # noqa: BLE001 - the launch raises it
        failed = error
    ended.put(failed)
