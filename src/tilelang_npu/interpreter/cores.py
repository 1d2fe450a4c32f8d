"""Cores that execute a kernel side by side: one thread each, of which one runs at a time.

Where a kernel names its cores (a Vector core's number, ``T.Scope``, flags between cores), the Cube core and the Vector cores of a
block each execute the whole function, and each does the operations that are its own. Accesses to memory that cores share are made
in the order of the kernel's statements: a core that comes to one waits until no other core can come to an earlier one. A core that
waits for a flag lets the others go on, so that flags order what the statements do not.

Blocks follow one another; where all cores of a block wait for the cores of other blocks, the next block begins.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import Context, copy_context
from typing import TYPE_CHECKING

from tilelang_npu.dispatch import THREAD
from tilelang_npu.errors import TileError

if TYPE_CHECKING:
    from tilelang_npu.interpreter.state import Core


class _Stopped(BaseException):
    """Ends a core's thread after another one has failed."""


class _Task:
    """A core and its thread.

    Attributes:
        position: where the core stands in the kernel's order; it waits for its turn there.
        ready: what it waits for beside its turn; None where that is nothing.
        reason: what it waits for, for a message.
    """

    def __init__(self, core: Core, number: int) -> None:
        self.core, self.number = core, number
        self.position: tuple[int, ...] = ()
        self.ready: Callable[[], bool] | None = None
        self.reason = ""
        self.wake = threading.Semaphore(0)

    def order(self) -> tuple[int, tuple[int, ...], int]:
        """By block, then by place in the kernel, then the Cube core first."""
        return self.core.block or 0, self.position, self.number


class Schedule:
    """The cores of a launch.

    Args:
        blocks: the cores of each block; a block's cores are made when it begins.
        body: what a core executes.
    """

    def __init__(self, blocks: Iterator[list[Core]], body: Callable[[Core], None]) -> None:
        self._blocks, self._body = blocks, body
        self._alive: list[_Task] = []
        self._by_core: dict[int, _Task] = {}
        self._of_block: dict[int | None, list[Core]] = {}
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

    def take_turn(self, core: Core, position: tuple[int, ...]) -> None:
        """Wait until no core stands before ``position``."""
        self._wait(core, position, None, "")

    def wait(self, core: Core, ready: Callable[[], bool], reason: str) -> None:
        """Wait until ``ready`` holds."""
        self._wait(core, core.position(), ready, reason)

    # --- flags -----------------------------------------------------------------------------------------------------------

    def raise_flag(self, core: Core, flag: int, mode: int) -> None:
        """Raise a flag: once all peers have, it is there for those that the mode names."""
        self.raised[core.block, core.kind, core.vector, flag, mode] += 1

    def wait_for_flag(self, core: Core, flag: int, total: int) -> None:
        """Take a flag that was raised; ``total`` is the number of cores of this kind in the launch."""
        key = (core.block, core.kind, core.vector, flag)
        wanted = self.consumed[key] + 1
        self.wait(core, lambda: self._raised_for(core, flag, total) >= wanted, f"flag {flag}")
        self.consumed[key] = wanted

    def _raised_for(self, core: Core, flag: int, total: int) -> int:
        """How often a flag was raised for a core."""
        other = "vector" if core.kind == "cube" else "cube"
        of_block = self._of_block[core.block]
        senders = [one for one in of_block if one.kind == other]
        found = min((self.raised[one.block, one.kind, one.vector, flag, 2] for one in senders), default=0)
        found += min((self.raised[one.block, one.kind, one.vector, flag, 1] for one in of_block if one.kind == core.kind),
                     default=0)
        alike = [one for cores in self._of_block.values() for one in cores if one.kind == core.kind]
        if len(alike) == total:
            found += min(self.raised[one.block, one.kind, one.vector, flag, 0] for one in alike)
        return found

    # --- threads ---------------------------------------------------------------------------------------------------------

    def _wait(self, core: Core, position: tuple[int, ...], ready: Callable[[], bool] | None, reason: str) -> None:
        task = self._by_core[id(core)]
        task.position, task.ready, task.reason = position, ready, reason
        if self._next() is task:
            return
        self._pass_on()
        task.wake.acquire()
        if self._failure is not None:
            raise _Stopped

    def _next(self) -> _Task | None:
        able = [task for task in self._alive if task.ready is None or task.ready()]
        return min(able, key=_Task.order) if able else None

    def _pass_on(self) -> None:
        """Wake the core whose turn it is; begin the next block where none can go on."""
        if self._ended.is_set():
            return
        found = self._next()
        while found is None:
            cores = next(self._blocks, None)
            if cores is None:
                if self._alive:
                    self._stop(_deadlock(self._alive))
                else:
                    self._ended.set()
                return
            self._begin(cores)
            found = self._next()
        found.wake.release()

    def _begin(self, cores: list[Core]) -> None:
        self._of_block[cores[0].block] = cores
        made = [_Task(core, number) for number, core in enumerate(cores)]
        self._alive += made
        for task in made:
            self._by_core[id(task.core)] = task
            threading.Thread(target=self._execute, args=(task, self._context.copy()), daemon=True,
                             name=f"{task.core.kind}-{task.core.block}").start()

    def _execute(self, task: _Task, context: Context) -> None:
        task.wake.acquire()
        try:
            if self._failure is None:
                THREAD.running = task.core
                context.run(self._body, task.core)
        except _Stopped:
            pass
        except BaseException as problem:  # noqa: BLE001  (told to the thread that launched)
            self._stop(problem)
        finally:
            self._alive.remove(task)
            self._by_core.pop(id(task.core), None)
        if self._failure is None:
            self._pass_on()

    def _stop(self, problem: BaseException) -> None:
        """End all threads."""
        if self._failure is None:
            self._failure = problem
        for task in self._alive:
            task.wake.release()
        self._ended.set()


def _deadlock(waiting: list[_Task]) -> TileError:
    notes = [f"{task.core.kind} core {task.core.vector} of block {task.core.block} waits for {task.reason} at line "
             f"{task.position[-1] if task.position else '?'}" for task in waiting]
    return TileError("cores wait for each other", code="S301", notes=notes, help="raise each flag as often as it is waited for")
