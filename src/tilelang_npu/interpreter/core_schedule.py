"""Cores that execute a kernel side by side: one thread each, of which one runs at a time.

Where a kernel names its cores (a Vector core's number, ``T.Scope``, flags between cores), the Cube core and the Vector cores of
a block each execute the whole function, and each does the operations that are its own. Accesses to memory that cores share are
made in the order of the kernel's statements: a core that comes to one waits until no other core can come to an earlier one. A
core that waits for a flag lets the others go on, so that flags order what the statements do not. Blocks follow one another;
where all cores of a block wait, the next block begins.

A tile that a core reads before the kernel's order writes it is a channel: the k-th read of each reading statement waits until
every element has been written k times, and an element is written for the k-th time once each reading statement has read k - 1
times. """

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
    """Ends a core's thread after another one has failed."""


class _Task:
    """A core and its thread; ``position`` is where it waits in the kernel's order, ``ready`` what it waits for beside its
    turn."""

    def __init__(self, core: Core, number: int) -> None:
        self.core, self.number = core, number
        self.position: tuple[int, ...] = ()
        self.ready: Callable[[], bool] | None = None
        self.reason = ""
        self.wake = threading.Semaphore(0)

    def order(self) -> tuple[int, tuple[int, ...], int]:
        """By block, then by place in the kernel, then the Cube core first."""
        return self.core.block, self.position, self.number


class CoreSchedule:
    """The cores of a launch.

    Args:
        blocks: the cores of each block; a block's cores are made when it begins.
        body: what a core executes.

    Attributes:
        raised: how often each core has raised each flag, by (block, kind, number, flag, mode).
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
        """Execute all cores of all blocks.

        Raises:
            TileError: S301, cores wait for flags that nobody raises; what a core raises.
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
        """Wait until no other core can come to an earlier place, and until ``ready`` holds."""
        task = self._by_core[core]
        task.position, task.ready, task.reason = core.position(), ready, reason
        if self._next() is task:
            return
        self._pass_on()
        task.wake.acquire()
        if self._failure is not None:
            raise _Stopped

    def raise_flag(self, core: Core, flag: int, mode: int) -> None:
        """Raise a flag: it is there for those that the mode names once all cores that it comes from together have raised it."""
        self.raised[core.block, core.kind, core.vector, flag, mode] += 1

    def wait_for_flag(self, core: Core, flag: int, total: int) -> None:
        """Take a flag that was raised; ``total`` is the number of cores of this kind in the launch."""
        key = (core.block, core.kind, core.vector, flag)
        wanted = self.consumed[key] + 1
        self.wait(core, lambda: self._raised_for(core, flag, total) >= wanted, f"flag {flag}")
        self.consumed[key] = wanted

    def _raised_for(self, core: Core, flag: int, total: int) -> int:
        """How often a flag was raised for a core: by the cores of the other kind in its block (mode 2), by those of its kind
        there (mode 1), and by those of its kind in all blocks (mode 0)."""
        def together(cores: list[Core], mode: int) -> int:
            return min((self.raised[one.block, one.kind, one.vector, flag, mode] for one in cores), default=0)

        here = self._of_block[core.block]
        alike = [one for cores in self._of_block.values() for one in cores if one.kind == core.kind]
        return (together([one for one in here if one.kind != core.kind], 2)
                + together([one for one in here if one.kind == core.kind], 1)
                + (together(alike, 0) if len(alike) == total else 0))

    def _next(self) -> _Task | None:
        able = [task for task in self._alive if task.ready is None or task.ready()]
        return min(able, key=_Task.order) if able else None

    def _pass_on(self) -> None:
        """Wake the core whose turn it is; begin the next block where none can go on."""
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
        except BaseException as problem:  # noqa: BLE001  (told to the thread that launched)
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
        """Make what a statement allocates a channel, which the statement at ``site`` reads."""
        self._sites.setdefault(key, set()).add(site)

    def is_open(self, key: object) -> bool:
        """Whether the buffers of an allocating statement are channels."""
        return key in self._sites

    def _state(self, buffer: HostBuffer) -> tuple[Any, dict[tuple[int, ...], int]]:
        """How often each element of a channel was written, and how often each statement has read it."""
        return self._of.setdefault(buffer, (np.zeros(buffer.array.shape, np.int64), dict.fromkeys(self._sites[buffer.key], 0)))

    def reads(self, core: Core, memory: TileRef) -> None:
        """Before a core reads a channel: wait for what it is to read."""
        written, reads = self._state(memory.buffer.root)
        wanted, places = reads.get(core.site(), 0) + 1, _places(memory)
        core.launch.schedule.wait(core, lambda: bool((written[places] >= wanted).all()), f"{memory.describe()} to be written")
        reads[core.site()] = wanted

    def writes(self, core: Core, memory: TileRef) -> None:
        """Before a core fills a channel, or a part of it: wait until it was read."""
        if self.is_open(memory.buffer.root.key):
            written, reads = self._state(memory.buffer.root)
            places = _places(memory)
            core.launch.schedule.wait(core, lambda: min(reads.values()) >= written[places].max(initial=0),
                                      f"{memory.describe()} to be read")
            written[places] += 1


def _places(memory: TileRef) -> Any:
    return tuple(slice(start, start + size) for start, size in zip(memory.offsets, memory.sizes, strict=True))
