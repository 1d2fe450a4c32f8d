"""Switches Python's garbage collector for reference cycles off while a kernel is compiled.

The objects of an MLIR module are reference cycles that stay alive during the whole compilation. Repeated collections would free
little, and would take a fifth of the compile time of a kernel of thousands of operations.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

__all__ = ["paused_garbage_collection"]


class _Pauses:
    """How many callers pause the collector at the moment, in all threads, and whether it was on before the first."""

    lock = Lock()
    count = 0
    was_enabled = False


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Returns a context manager inside of which the garbage collector is off.

    With several concurrent users, in any threads, the collector is switched on again when the last of them leaves. If it was
    off before the first one, it stays off.
    """
    with _Pauses.lock:
        if not _Pauses.count:
            _Pauses.was_enabled = gc.isenabled()
            gc.disable()
        _Pauses.count += 1
    try:
        yield
    finally:
        with _Pauses.lock:
            _Pauses.count -= 1
            if not _Pauses.count and _Pauses.was_enabled:
                gc.enable()
