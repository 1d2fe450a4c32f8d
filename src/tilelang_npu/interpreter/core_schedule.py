"""Executes the cores of a kernel concurrently: one thread for each core, of which only one runs at a time.

Where a kernel names its cores (by a Vector core's number, ``T.Scope``, or flags between cores), the Cube core and the Vector
cores of a block each execute the whole function, and skip the operations of other cores. Accesses to memory that cores share
are made in the order of the kernel's statements: a core waits before such an access until no other core can still reach an
earlier one. A core that waits for a flag lets other cores run. When all cores of the running blocks wait, the next block is
started.

A tile that a core reads before the kernel's order writes it is a channel. The k-th read of each reading statement waits until
every element has been written k times. The k-th write of an element waits until each reading statement has read k - 1 times.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_npu.dispatch import THREAD
from tilelang_npu.errors import TileError

if TYPE_CHECKING:
    from tilelang_npu.interpreter.host_buffers import HostBuffer, TileRef
    from tilelang_npu.interpreter.running_core import Core


class _Stopped(BaseException):
    """Ends the thread of a core after another core has failed."""


class _Task:
    """A core and its thread: its position in the kernel's order while it waits, and the condition that it waits for."""

    def __init__(self, core: Core, number: int) -> None:
        self.core, self.number = core, number
        self.position: tuple[int, ...] = ()
        self.ready: Callable[[], bool] | None = None
        self.reason = ""
        self.wake = threading.Semaphore(0)

    def order(self) -> tuple[int, tuple[int, ...], int]:
        """The order in which waiting cores continue: by block, by position in the kernel, and the Cube core first."""
        return self.core.block, self.position, self.number


class CoreSchedule:
    """The cores of a launch.

    Args:
        blocks: the cores of each block, made when the block is started.
        body: executes a core.

    Attributes:
        raised: how often each core has set each flag, by (block, kind, number, flag, mode).
        consumed: how often each core has waited for each flag.
    """

    def __init__(self, blocks: Iterator[list[Core]], body: Callable[[Core], None]) -> None:
        self._blocks, self._body = blocks, body
        self._alive: list[_Task] = []
        self._by_core: dict[Core, _Task] = {}
        self._of_block: dict[int, list[Core]] = {}
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._context = copy_context()
        self.raised: Counter[tuple[object, ...]] = Counter()
        self.consumed: Counter[tuple[object, ...]] = Counter()

    def run(self) -> None:
        """Executes all cores of all blocks.

        Raises:
            TileError: S301, cores wait for flags that no core sets. Exceptions of a core are passed on.
        """
        self._pass_on()
        try:
            self._ended.wait()
        except BaseException:
            self._stop(_Stopped())
            raise
        if self._failure is not None:
            raise self._failure

    def wait(self, core: Core, ready: Callable[[], bool] | None, reason: str) -> None:
        """Waits until no other core can reach an earlier position, and ``ready`` holds."""
        task = self._by_core[core]
        task.position, task.ready, task.reason = core.position(), ready, reason
        if self._next() is task:
            return
        self._pass_on()
        task.wake.acquire()
        if self._failure is not None:
            raise _Stopped

    def raise_flag(self, core: Core, flag: int, mode: int) -> None:
        """Sets a flag. Waiting cores see it once all cores that the mode combines have set it."""
        self.raised[core.block, core.kind, core.vector, flag, mode] += 1

    def wait_for_flag(self, core: Core, flag: int, total: int) -> None:
        """Waits for a flag and consumes it; ``total`` is the number of cores of this kind in the launch."""
        key = (core.block, core.kind, core.vector, flag)
        wanted = self.consumed[key] + 1
        self.wait(core, lambda: self._raised_for(core, flag, total) >= wanted, f"flag {flag}")
        self.consumed[key] = wanted

    def _raised_for(self, core: Core, flag: int, total: int) -> int:
        """How often a flag was set for a core.

        Mode 2 counts the cores of the other kind in its block, mode 1 those of its kind there, mode 0 those of its kind in all
        blocks.
        """
        def sets_of_all(cores: list[Core], mode: int) -> int:
            return min((self.raised[one.block, one.kind, one.vector, flag, mode] for one in cores), default=0)

        block = self._of_block[core.block]
        same_kind = [one for cores in self._of_block.values() for one in cores if one.kind == core.kind]
        return (sets_of_all([one for one in block if one.kind != core.kind], 2)
                + sets_of_all([one for one in block if one.kind == core.kind], 1)
                + (sets_of_all(same_kind, 0) if len(same_kind) == total else 0))

    def _next(self) -> _Task | None:
        able = [task for task in self._alive if task.ready is None or task.ready()]
        return min(able, key=_Task.order) if able else None

    def _pass_on(self) -> None:
        """Wakes the core that continues next, and starts the next block where no core can continue."""
        while not self._ended.is_set():
            found = self._next()
            if found is not None:
                found.wake.release()
                return
            cores = next(self._blocks, None)
            if cores is not None:
                self._begin(cores)
            elif self._alive:
                notes = [f"{task.core.kind} core {task.core.vector} of block {task.core.block} waits for {task.reason} at line "
                         f"{task.position[-1]}" for task in self._alive]
                self._stop(TileError("cores wait for each other", code="S301", notes=notes,
                                     help="raise each flag as often as it is waited for"))
            else:
                self._ended.set()

    def _begin(self, cores: list[Core]) -> None:
        self._of_block[cores[0].block] = cores
        for number, core in enumerate(cores):
            task = self._by_core[core] = _Task(core, number)
            self._alive.append(task)
            threading.Thread(target=self._context.copy().run, args=(self._execute, task), daemon=True).start()

    def _execute(self, task: _Task) -> None:
        task.wake.acquire()
        try:
            if self._failure is None:
                THREAD.running = task.core
                self._body(task.core)
        except BaseException as problem:  # noqa: BLE001  (raised again in the thread that launched)
            self._stop(problem)
        self._alive.remove(task)
        self._pass_on()

    def _stop(self, problem: BaseException) -> None:
        """End all threads."""
        self._failure = self._failure or problem
        for task in self._alive:
            task.wake.release()
        self._ended.set()


class TileChannels:
    """The channels of a launch, by the statement that allocates their buffer."""

    def __init__(self) -> None:
        self._sites: dict[object, set[tuple[int, ...]]] = {}
        self._of: dict[HostBuffer, tuple[Any, dict[tuple[int, ...], int]]] = {}

    def open(self, key: object, site: tuple[int, ...]) -> None:
        """Makes the buffers of an allocating statement channels, which the statement at ``site`` reads."""
        self._sites.setdefault(key, set()).add(site)

    def is_open(self, key: object) -> bool:
        """Whether the buffers of an allocating statement are channels."""
        return key in self._sites

    def _state(self, buffer: HostBuffer) -> tuple[Any, dict[tuple[int, ...], int]]:
        """How often each element of a channel was written, and how often each statement has read it."""
        return self._of.setdefault(buffer, (np.zeros(buffer.array.shape, np.int64), dict.fromkeys(self._sites[buffer.key], 0)))

    def reads(self, core: Core, memory: TileRef) -> None:
        """Waits, before a core reads a channel, until the tile has been written for this read."""
        written, reads = self._state(memory.buffer.root)
        wanted, places = reads.get(core.site(), 0) + 1, _places(memory)
        core.launch.schedule.wait(core, lambda: bool((written[places] >= wanted).all()), f"{memory.describe()} to be written")
        reads[core.site()] = wanted

    def writes(self, core: Core, memory: TileRef) -> None:
        """Waits, before a core writes a channel or a part of it, until the earlier contents have been read."""
        if self.is_open(memory.buffer.root.key):
            written, reads = self._state(memory.buffer.root)
            places = _places(memory)
            core.launch.schedule.wait(core, lambda: min(reads.values()) >= written[places].max(initial=0),
                                      f"{memory.describe()} to be read")
            written[places] += 1


def _places(memory: TileRef) -> Any:
    return tuple(slice(start, start + size) for start, size in zip(memory.offsets, memory.sizes, strict=True))
