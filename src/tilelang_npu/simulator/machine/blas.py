"""How many threads BLAS computes a product with: a number that a whole process shares."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class _Limit:
    """One BLAS thread from the first run that begins until the last one that is under way ends, whoever began it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._own = threading.local()
        self._set: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._set = _controller().limit(limits=1, user_api="blas")
            self._inside += 1
        self._own.inside = getattr(self._own, "inside", 0) + 1

    def leave(self) -> None:
        self._own.inside -= 1
        with self._lock:
            self._inside -= 1
            self._restore()

    def forked(self) -> None:
        """In a process that was forked, only the thread that forked it is still running."""
        self._lock = threading.Lock()
        self._inside = getattr(self._own, "inside", 0)
        self._restore()

    def _restore(self) -> None:
        if self._inside == 0 and self._set is not None:
            self._set.restore_original_limits()
            self._set = None


_LIMIT = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.forked)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Many small products on many threads are slower than on one, by a hundred times on a busy machine."""
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()
