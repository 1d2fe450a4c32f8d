"""The cores of an interpreted launch: the state of one core (its indices and its position in the kernel), and the scheduler of
cores that run concurrently.

If a kernel distinguishes its cores (by the index of the Vector core, ``T.Scope``, or flags between cores), the Cube core and
the Vector cores of a block each execute the whole function, and skip the operations of other cores. Each core has a thread, and
only one thread runs at a time. Accesses to memory that cores share are made in the order of the kernel's statements: before
such an access, a core waits until no other core can still reach an earlier access. While a core waits for a flag, other cores
run. When all cores of the running blocks wait, the next block is started.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Protocol

from tilelang_npu.card_signals import CardWait, PollWait, wait_for_cards
from tilelang_npu.dispatch import THREAD, assigned_references
from tilelang_npu.errors import Location, TileError
from tilelang_npu.source_dialects import TracedDialect

if TYPE_CHECKING:
    import numpy as np

    from tilelang_npu.diagnostic_codes import Code

KERNEL_CODE: set[CodeType] = set()
"""The code objects of interpreted functions. A Python frame with one of them is at a line of the author's code."""


class SharedState(Protocol):
    """What a core uses of the state that all cores share (``InterpretedLaunch``)."""

    @property
    def dialect(self) -> TracedDialect: ...
    @property
    def operation(self) -> Callable[[str], Callable[..., object]]: ...
    @property
    def schedule(self) -> CoreSchedule: ...
    @property
    def kinds(self) -> set[str]: ...
    def rewritten(self, function: FunctionType, names: Mapping[str, object]) -> FunctionType: ...


@dataclass(eq=False)
class RunningLoop:
    """A loop that is being executed: the lines of its statement, and the number of the current iteration."""

    lines: tuple[int, ...]
    iteration: int = -1


class Core:
    """A core that executes the kernel's function.

    If the kernel does not distinguish cores, one object executes the operations of all cores of all blocks.

    Attributes:
        launch: the state that all cores share.
        kind: ``cube`` or ``vector``; or ``all`` if the object executes the operations of all cores.
        vector: the index of the Vector core in its block.
        block: the index of the block.
        sub_block: the index of the Vector core for which the body of the ``T.Kernel`` is executed.
        kernel: the index, from 0 on, of the only ``T.Kernel`` that the core executes; None for all of them.
        only: the index of the only block that the core executes; None for all blocks.
        grids: the block counts of each ``T.Kernel`` that the core has reached.
        counted: for each of these ``T.Kernel``, the number of values of its sub-block index, which is that of Vector cores
            per block.
        threads: the number of threads along each axis of a block, as a GPU kernel states it (``threads=``), in the
            ``T.Kernel`` that is being executed.
        points: the points (``ParallelPoints``) of the ``T.Parallel`` that is being executed on arrays; otherwise None.
        in_parallel: whether the body of a ``T.Parallel`` is being executed.
        scope: the core of the enclosing ``T.Scope``; None outside of one.
        pipes: the pipes of the enclosing ``T.rs``, innermost last.
        conditions: the conditions of the enclosing ``T.If``, innermost last.
        loops: the enclosing loops, innermost last.
        allocated: the number of buffers that each allocating statement has allocated in this block.
        scale: the factor of the last ``T.set_deq_scale``; None if there was none.
        atomic: combines an element of a global tensor with a copied one, after ``T.set_atomic``; None if copies replace it.
        in_vector_function: whether the body of a ``T.SimdVF`` or ``T.SimtVF`` is being executed.
        polls: the enclosing ``while`` loops, innermost last, which may poll a tensor that other cards write.
        arrays: the elements of the buffers on chip that the core has allocated, if it is a card of a pod.
    """

    def __init__(self, launch: SharedState, kind: str, vector: int = 0, block: int = 0, kernel: int | None = None,
                 only: int | None = None) -> None:
        self.launch, self.kind, self.vector, self.block, self.kernel, self.only = launch, kind, vector, block, kernel, only
        self.sub_block = vector
        self.grids: list[tuple[int, ...]] = []
        self.counted: list[int] = []
        self.threads: tuple[int, ...] = ()
        self.points: object = None
        self.in_parallel = False
        self.scope: str | None = None
        self.pipes: list[str] = []
        self.conditions: list[bool] = []
        self.loops: list[RunningLoop] = []
        self.allocated: dict[object, int] = {}
        self.scale: float | None = None
        self.atomic: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
        self.in_vector_function = False
        self.polls: list[PollWait] = []
        self.arrays: list[np.ndarray] = []

    def before_read(self, array: np.ndarray, name: str) -> None:
        """Called before a read of a part of a global tensor, for the ``while`` loops around it."""
        for poll in self.polls:
            poll.read(array, name)

    def acts(self) -> None:
        """Called before a write to a global tensor or to another card."""
        for poll in self.polls:
            poll.acts = True

    @property
    def dialect(self) -> TracedDialect:
        """The dialect of the kernel's source, ``npuir`` or ``ascendc``."""
        return self.launch.dialect

    def call(self, name: str, arguments: Sequence[object], keywords: Mapping[str, object]) -> object:
        """Executes the operation ``T.<name>`` with the given arguments, and returns its result."""
        return self.launch.operation(name)(*arguments, **keywords)

    def inline(self, function: FunctionType, arguments: Sequence[object], keywords: Mapping[str, object], *, hygienic: bool
               ) -> object:
        """Calls the rewritten function of a macro, and returns its result.

        Args:
            function: the author's function.
            arguments: the positional arguments.
            keywords: the keyword arguments by name.
            hygienic: whether free names of the macro are resolved where the macro is defined; otherwise the names at the call
                take precedence.
        """
        written = assigned_references(function)
        given = {**dict(zip(function.__code__.co_varnames, arguments, strict=False)), **keywords}
        if any(not getattr(given.get(name), "named", False) for name in written & given.keys()):
            raise fail(f"macro {function.__name__!r} assigns {', '.join(sorted(written))}, each a T.Ref",
                       "pass a T.alloc_var, or the buffer and the index", "T145")
        outer = None if hygienic else next(self.frames(), None)
        made: object = self.launch.rewritten(function, {} if outer is None else dict(outer.f_locals))(*arguments, **keywords)
        return made

    def executes(self, kind: str) -> bool:
        """Whether this core executes operations of the cores of the given kind (``cube`` or ``vector``)."""
        if self.kind == "all":
            self.launch.kinds.add(kind)
        return self.kind in ("all", kind)

    def touches(self, *, shared: bool, writes: bool = False) -> bool:
        """Prepares an access to an element of a buffer, and returns whether this core must make the access.

        If cores share the buffer, the core first waits for accesses of other cores that come earlier in the kernel. Only one of
        the cores writes to a shared buffer.

        Args:
            shared: whether cores share the buffer.
            writes: whether the access is a write.
        """
        if self.kind == "all" or not shared:
            return True
        if writes and self.kind != (self.scope or "vector"):
            return False
        self.take_turn()
        return True

    def take_turn(self) -> None:
        """Waits until no other core can still execute a statement that comes before this position of the kernel."""
        if self.kind != "all":
            self.launch.schedule.wait(self, None, "")

    @staticmethod
    def frames() -> Iterator[FrameType]:
        """Yields the Python frames of the kernel and of its macros in the current thread, innermost first."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code in KERNEL_CODE:
                yield frame
            frame = frame.f_back

    def location(self) -> Location | None:
        """Returns the line of the author's source that is being executed; None outside of the kernel."""
        frame = next(self.frames(), None)
        return None if frame is None else Location(frame.f_code.co_filename, frame.f_lineno)

    def site(self) -> tuple[int, ...]:
        """Returns the line numbers that are being executed: that of the kernel, then those of the macros, innermost last."""
        return tuple(frame.f_lineno for frame in self.frames())[::-1]

    def position(self) -> tuple[int, ...]:
        """Returns the current position as a tuple of line and iteration numbers, outermost first.

        A tuple that compares less is executed earlier in the sequential order of the kernel.
        """
        return tuple(part for loop in self.loops for part in (*loop.lines, loop.iteration)) + self.site()

    @contextmanager
    def loop(self) -> Iterator[RunningLoop]:
        """A context manager that registers a loop as an enclosing loop of the current position.

        It yields the :class:`RunningLoop`, whose ``iteration`` the caller must increment in each iteration.
        """
        entry = RunningLoop(self.site() if self.kind != "all" else ())
        self.loops.append(entry)
        try:
            yield entry
        finally:
            if entry in self.loops:
                while self.loops.pop() is not entry:
                    pass


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
    """The scheduler of the cores of a launch: it decides which core continues when a core waits.

    Args:
        blocks: an iterator over the blocks, which yields the list of a block's cores when the block is started.
        body: the function that executes the kernel on a core.

    Attributes:
        raised: the number of times that each flag was set, by (block, kind of core, index of the core, flag, mode).
        consumed: the number of times that each core has waited for each flag, by (block, kind of core, index of the core,
            flag).
    """

    def __init__(self, blocks: Iterator[list[Core]], body: Callable[[Core], None]) -> None:
        self._blocks, self._body = blocks, body
        self._alive: list[_Task] = []
        self._by_core: dict[Core, _Task] = {}
        self._of_block: dict[int, list[Core]] = {}
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._card_waits: dict[Core, CardWait] = {}
        self._context = copy_context()
        self.raised: Counter[tuple[object, ...]] = Counter()
        self.consumed: Counter[tuple[object, ...]] = Counter()

    def run(self) -> None:
        """Executes all cores of all blocks.

        Raises:
            TileError: S301, cores wait for flags that no core sets. Exceptions of a core are raised again.
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
        """Suspends a core until ``ready`` is true and no other core that can continue is at an earlier position of the kernel.

        Args:
            core: the core.
            ready: returns whether the core can continue; None if it always can.
            reason: a description of what the core waits for, for the error of a deadlock.
        """
        task = self._by_core[core]
        task.position, task.ready, task.reason = core.position(), ready, reason
        if self._next() is task:
            return
        self._pass_on()
        task.wake.acquire()
        if self._failure is not None:
            raise _Stopped

    def raise_flag(self, core: Core, flag: int, mode: int) -> None:
        """Sets a flag. A core that waits for the flag continues when all cores that belong to the mode have set it.

        Args:
            core: the core that sets the flag.
            flag: the number of the flag.
            mode: 0 for all cores of this kind in the launch, 1 for the cores of this kind in the block, 2 for signalling the
                cores of the other kind in the block.
        """
        self.raised[core.block, core.kind, core.vector, flag, mode] += 1

    def wait_for_flag(self, core: Core, flag: int, total: int) -> None:
        """Suspends a core until a flag is set for it, and consumes one set of the flag.

        Args:
            core: the core that waits.
            flag: the number of the flag.
            total: the number of cores of this kind in the launch.
        """
        key = (core.block, core.kind, core.vector, flag)
        wanted = self.consumed[key] + 1
        self.wait(core, lambda: self._raised_for(core, flag, total) >= wanted, f"flag {flag}")
        self.consumed[key] = wanted

    def wait_for_card(self, core: Core, wait: CardWait) -> None:
        """Suspends a core until a wait for another card is over."""
        self._card_waits[core] = wait
        try:
            self.wait(core, wait.ready, wait.describe())
        finally:
            del self._card_waits[core]

    def _raised_for(self, core: Core, flag: int, total: int) -> int:
        """Returns how often a flag was set for a core, that is, how often all cores that must set the flag have set it.

        For mode 2 these are the cores of the other kind in the core's block, for mode 1 the cores of the same kind in the
        core's block, and for mode 0 the cores of the same kind in all blocks.
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
        """Wakes the core that continues next, or starts the next block if no core can continue."""
        while not self._ended.is_set():
            found = self._next()
            if found is not None:
                found.wake.release()
                return
            cores = next(self._blocks, None)
            if cores is not None:
                self._begin(cores)
            elif self._card_waits:
                try:
                    wait_for_cards(list(self._card_waits.values()))
                except TileError as problem:
                    self._stop(problem)
            elif self._alive:
                notes = [f"{task.core.kind} core {task.core.vector} of block {task.core.block} waits for {task.reason} at line "
                         f"{task.position[-1]}" for task in self._alive]
                self._stop(TileError("cores wait for each other", code="S301", notes=notes,
                                     help="set each flag as often as it is waited for"))
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
        """Ends the threads of all cores."""
        self._failure = self._failure or problem
        for task in self._alive:
            task.wake.release()
        self._ended.set()


def wait_for_card(wait: CardWait) -> None:
    """Lets other cores of the launch run until a wait of the current core is over."""
    core = current()
    if core.kind == "all":
        while not wait.ready():
            wait_for_cards([wait])
    else:
        core.launch.schedule.wait_for_card(core, wait)
    wait.finish()


def current() -> Core:
    """Returns the interpreted core whose operations the calling thread executes."""
    found = THREAD.running
    assert isinstance(found, Core)
    return found


def fail(message: str, advice: str, code: Code = "T111") -> TileError:
    """Returns an error with the position of the author's line that is being executed.

    Args:
        message: the message.
        advice: what the author can do, for the error's help.
        code: the code of the error.
    """
    return TileError(message, code=code, location=current().location(), help=advice)
