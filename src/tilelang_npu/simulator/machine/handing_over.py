"""How soon threads that compute one launch hand the interpreter to each other: a number that a whole process shares."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

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
def short_turns() -> Iterator[None]:
    """Threads that compute a launch together hand the interpreter over as soon as one asks."""
    _TURNS.enter()
    try:
        yield
    finally:
        _TURNS.leave()
