"""The state of one core of an interpreted launch: its numbers, its memory, its position in the kernel."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from tilelang_npu.dispatch import THREAD
from tilelang_npu.errors import Location, TileError

KERNEL_CODE: set[CodeType] = set()
"""The code objects of interpreted functions: a frame of one of them is at a line of the author."""


class Core:
    """A core that executes the kernel's function; or one for all cores of all blocks, where the kernel does not distinguish
    them.

    Attributes:
        launch: the state that the cores of a launch share, an ``InterpretedLaunch`` (of a module above this one).
        kind: ``cube``, ``vector``, or ``all`` where this object executes the work of all cores.
        vector, block: the number of the Vector core in its block, and of the block.
        kernel, only: the number of the only ``T.Kernel`` and of the only block that it executes; None for all.
        grids: the block counts of each ``T.Kernel`` that it has reached.
        points: the ``ParallelPoints`` of the ``T.Parallel`` that is executed on arrays; None elsewhere.
        in_parallel: whether the body of a ``T.Parallel`` is executed.
        scope: the core of the enclosing ``T.Scope``.
        pipes, conditions: the enclosing ``T.rs`` and ``T.If``, innermost last.
        loops: for each enclosing loop the lines of its statement and the number of its iteration.
        allocated: how many buffers each allocating statement has allocated in this block.
        addressed: for each memory the bytes in which ``T.annotate_address`` placed buffers.
        scale: the factor of ``T.set_deq_scale``; None without one.
    """

    def __init__(self, launch: Any, kind: str, vector: int = 0, block: int = 0, kernel: int | None = None,
                 only: int | None = None) -> None:
        self.launch, self.kind, self.vector, self.block, self.kernel, self.only = launch, kind, vector, block, kernel, only
        self.grids: list[tuple[int, ...]] = []
        self.points: Any = None
        self.in_parallel = False
        self.scope: str | None = None
        self.pipes: list[str] = []
        self.conditions: list[bool] = []
        self.loops: list[list[Any]] = []
        self.allocated: dict[object, int] = {}
        self.addressed: dict[object, Any] = {}
        self.scale: float | None = None

    @property
    def dialect(self) -> str:
        """``npuir`` or ``ascendc``."""
        return str(self.launch.dialect)

    def call(self, name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Executes the operation ``T.<name>``."""
        return self.launch.operation(name)(*arguments, **keywords)

    def inline(self, function: FunctionType, arguments: Sequence[Any], keywords: Mapping[str, Any], *, hygienic: bool) -> Any:
        """Calls the function of a macro, rewritten as the kernel is."""
        outer = None if hygienic else next(self.frames(), None)
        return self.launch.rewritten(function, {} if outer is None else dict(outer.f_locals))(*arguments, **keywords)

    def executes(self, kind: str) -> bool:
        """Whether this core executes operations of the ``cube`` or ``vector`` cores."""
        return self.kind in ("all", kind)

    def touches(self, buffer: Any, *, writes: bool = False) -> bool:
        """Prepares an access to an element, and returns whether this core makes it.

        Where cores share the buffer, the access waits for earlier work of the other cores, and only one of them stores.
        """
        if self.kind == "all" or (buffer.own and buffer.space != "gm"):
            return True
        if writes and self.kind != (self.scope or "vector"):
            return False
        self.take_turn()
        return True

    def take_turn(self) -> None:
        """Waits until all cores have executed the statements before this position of the kernel."""
        if self.kind != "all":
            self.launch.schedule.wait(self, None, "")

    @staticmethod
    def frames() -> Iterator[Any]:
        """The Python frames of the kernel and of its macros, innermost first."""
        frame: Any = sys._getframe(1)
        while frame is not None:
            if frame.f_code in KERNEL_CODE:
                yield frame
            frame = frame.f_back

    def location(self) -> Location | None:
        """The author's line that is being executed."""
        frame = next(self.frames(), None)
        return None if frame is None else Location(frame.f_code.co_filename, frame.f_lineno)

    def site(self) -> tuple[int, ...]:
        """The lines that are being executed, from the kernel's to the innermost macro's."""
        return tuple(frame.f_lineno for frame in self.frames())[::-1]

    def position(self) -> tuple[int, ...]:
        """The position in the kernel's order of execution: lines and iterations, outermost first. Tuples compare in that order.
        """
        return tuple(part for place, iteration in self.loops for part in (*place, iteration)) + self.site()

    @contextmanager
    def loop(self) -> Iterator[list[Any]]:
        """Registers a loop; the second item of the list is the number of the iteration, which the caller counts."""
        entry: list[Any] = [self.site() if self.kind != "all" else (), -1]
        self.loops.append(entry)
        try:
            yield entry
        finally:
            if any(entry is other for other in self.loops):
                while self.loops.pop() is not entry:
                    pass


def current() -> Core:
    """Returns the core that this thread executes."""
    found: Core = THREAD.running
    return found


def fail(message: str, advice: str, code: str = "T111") -> TileError:
    """Returns an error at the author's line."""
    return TileError(message, code=code, location=current().location(), help=advice)
