"""The launches that kernels keep as their last ones, and the memory of the arrays in them.

Each kernel keeps its last launch, and with it the arrays of the call, since hazards are only searched when somebody asks for
them. In a session of hundreds of kernels this is the largest part of the memory. If the arrays of all last launches together
take more than ``MOST_BYTES``, the oldest launches give theirs up (``Launch.release``).
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING

from tilelang_npu.simulator.machine.aliasing_arguments import memory_ranges

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch

MOST_BYTES = 1 << 30
"""Bytes of arrays that last launches keep together, besides the newest one, before the oldest give theirs up."""


class KeptLaunches:
    """The launches whose arrays are kept, the oldest first.

    Args:
        most: the bytes of arrays that the launches keep together, except for the newest one.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._arrays: dict[weakref.ref[Launch], dict[int, int]] = {}
        self._users: dict[int, list[int]] = {}
        self._ended: deque[weakref.ref[Launch]] = deque()  # the collector can end a launch at any time: it only appends here
        self._total = 0

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays of all kept launches; an array that several launches use counts once."""
        with self._lock:
            self._drop_ended()
            return self._total

    def add(self, launch: Launch) -> None:
        """Adds a launch, and lets the oldest ones give up their arrays if all take too much memory."""
        arrays = {memory.start: memory.size for memory in memory_ranges(launch.recorded.bound.arrays)}
        with self._lock:
            self._drop_ended()
            newest = weakref.ref(launch, self._ended.append)
            self._arrays[newest] = arrays
            for start, nbytes in arrays.items():
                user = self._users.setdefault(start, [0, 0])
                self._total += max(0, nbytes - user[0])
                user[0], user[1] = max(user[0], nbytes), user[1] + 1
            own = sum(arrays.values())
            for oldest in list(self._arrays):
                if oldest is newest or self._total - own <= self.most:
                    break
                held = oldest()
                if held is None or held.release():
                    self._drop(oldest)

    def _drop_ended(self) -> None:
        """Removes the launches that no longer exist."""
        while self._ended:
            self._drop(self._ended.popleft())

    def _drop(self, launch: weakref.ref[Launch]) -> None:
        """Removes a launch that has ended or has given up its arrays."""
        for start in self._arrays.pop(launch, ()):
            user = self._users[start]
            user[1] -= 1
            if not user[1]:
                self._total -= user[0]
                del self._users[start]


KEPT = KeptLaunches()
"""The launches of all kernels of the process."""
