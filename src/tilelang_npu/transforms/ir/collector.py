"""Python's collector of cycles waits while a kernel is compiled.

A module is one web of cycles, which lives as long as it is compiled: to look through it again and again finds little, and takes
a fifth of the time of a kernel of thousands of operations.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

__all__ = ["collector_waits"]


class _Waiting:
    """How many wait for the same at once, in all threads, and whether the collector was on when the first began."""

    lock = Lock()
    count = 0
    was_on = False


@contextmanager
def collector_waits() -> Iterator[None]:
    """Let it wait until the last of those who want this is done; it stays off where it was."""
    with _Waiting.lock:
        if not _Waiting.count:
            _Waiting.was_on = gc.isenabled()
            gc.disable()
        _Waiting.count += 1
    try:
        yield
    finally:
        with _Waiting.lock:
            _Waiting.count -= 1
            if not _Waiting.count and _Waiting.was_on:
                gc.enable()
