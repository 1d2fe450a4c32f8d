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
        stale_told: whether somebody was warned of a result of memory which nothing wrote, or something else.
        lock: for the last two, and for the sizes at which somebody looked for it.
    """

    def __init__(self) -> None:
        self.threads = threading.local()
        self.overwritten: dict[object, frozenset[int]] = {}
        self.stale_told = False
        self._looked: set[object] = set()
        self.lock = threading.RLock()

    def first_of_sizes(self, sizes: object) -> bool:
        """True for one caller with these sizes."""
        with self.lock:
            first = sizes not in self._looked
            self._looked.add(sizes)
        return first

    def first_stale(self) -> bool:
        """True for one caller."""
        with self.lock:
            first, self.stale_told = not self.stale_told, True
        return first
