"""How many threads BLAS computes a product with: a number that a whole process shares, or with OpenMP one of each thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
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
    """Many small products on many threads are slower than on one, by a hundred times on a busy machine. Each thread that
    computes says so for itself.
    """
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()
