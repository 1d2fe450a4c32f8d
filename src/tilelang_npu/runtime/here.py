"""What has become of a kernel in this process: the part of it that no pickle takes along."""

from __future__ import annotations

import threading

__all__ = ["Here"]


class Here:
    """What has become of a kernel in this process.

    Attributes:
        threads: of each thread the last launch.
        overwritten: by the sizes at which it is known what is written, the positions of large results that are written wholly,
            whatever the arguments hold, and never read.
        stale_told: whether somebody was warned of a NaN that comes of memory which nothing wrote.
        lock: for the last two.
    """

    def __init__(self) -> None:
        self.threads = threading.local()
        self.overwritten: dict[object, frozenset[int]] = {}
        self.stale_told = False
        self.lock = threading.RLock()

    def first_stale(self) -> bool:
        """True for one caller."""
        with self.lock:
            first, self.stale_told = not self.stale_told, True
        return first
