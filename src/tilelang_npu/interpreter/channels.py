"""Tiles that one core reads before the kernel's order of statements writes them.

Where a core reads a tile that another core's later statement fills, the tile is a channel: the k-th read of each reading statement
waits until every element has been written k times, and an element is written for the k-th time once each reading statement has read
it k - 1 times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tilelang_npu.interpreter.memory import Buffer, Memory
    from tilelang_npu.interpreter.state import Core


class _Channel:
    """How often each element was written, and how often each statement has read."""

    def __init__(self, buffer: Buffer, sites: set[tuple[int, ...]]) -> None:
        self.versions = np.zeros(buffer.array.shape, np.int64)
        self.reads: dict[tuple[int, ...], int] = dict.fromkeys(sites, 0)


class Channels:
    """The channels of a launch, by buffer."""

    def __init__(self) -> None:
        self._sites: dict[object, set[tuple[int, ...]]] = {}
        self._of: dict[int, tuple[Buffer, _Channel]] = {}

    def open(self, key: object, site: tuple[int, ...]) -> None:
        """Make what a statement allocates a channel, which the statement at ``site`` reads."""
        self._sites.setdefault(key, set()).add(site)

    def is_open(self, key: object) -> bool:
        """Whether the buffers of an allocating statement are channels."""
        return key in self._sites

    def _channel(self, buffer: Buffer) -> _Channel:
        if id(buffer) not in self._of:
            self._of[id(buffer)] = buffer, _Channel(buffer, self._sites[buffer.key])
        return self._of[id(buffer)][1]

    def reads(self, core: Core, memory: Memory) -> None:
        """Before a core reads a channel: wait for what it is to read."""
        channel = self._channel(memory.buffer.root)
        site = core.site()
        wanted = channel.reads.setdefault(site, 0) + 1
        places = _places(memory)
        core.launch.schedule.wait(core, lambda: bool((channel.versions[places] >= wanted).all()), f"{memory.describe()} to be written")
        channel.reads[site] = wanted

    def writes(self, core: Core, memory: Memory) -> None:
        """Before a core fills a tile, or a part of it: wait until it was read."""
        buffer = memory.buffer.root
        if not self.is_open(buffer.key):
            return
        channel = self._channel(buffer)
        places = _places(memory)

        def is_free() -> bool:
            latest = int(channel.versions[places].max(initial=0))
            return latest == 0 or (bool(channel.reads) and min(channel.reads.values()) >= latest)

        core.launch.schedule.wait(core, is_free, f"{memory.describe()} to be read")
        channel.versions[places] += 1


def _places(memory: Memory) -> Any:
    return tuple(slice(start, start + size) for start, size in zip(memory.offsets, memory.sizes, strict=True))
