"""What one core of an interpreted launch knows: its numbers, its memory, its place in the kernel."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from tilelang_npu.dispatch import THREAD
from tilelang_npu.errors import Location, TileError

KERNEL_CODE: set[CodeType] = set()
"""Code objects of the functions that are interpreted: a frame of one of them is at the author's line."""


class Core:
    """A core that executes the kernel's function, or all cores of all blocks in turn where nothing tells them apart.

    Attributes:
        launch: what the cores of a launch share, an ``InterpretedLaunch`` (a module above this one).
        kind: ``cube``, ``vector``, or ``all`` where one core stands for those of a block.
        vector, block: the number of the Vector core in its block, and of the block.
        kernel, only: the number of the ``T.Kernel``, and of the block, that it executes alone; None for all.
        grids: of each ``T.Kernel`` that it came to, the block counts.
        points: the ``T.Parallel`` that is executed on arrays, a ``ParallelPoints``; None elsewhere.
        in_parallel: whether the body of a ``T.Parallel`` is executed.
        scope, pipes, conditions: the core of the enclosing ``T.Scope``; the enclosing ``T.rs`` and ``T.If``, innermost last.
        loops: of each enclosing loop the place of its statement and the number of its iteration.
        allocated: how many buffers each allocating statement has made in this block.
        addressed: per memory, the bytes that ``T.annotate_address`` placed buffers in.
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
        """Carry out a language function."""
        return self.launch.operation(name)(*arguments, **keywords)

    def inline(self, function: FunctionType, arguments: Sequence[Any], keywords: Mapping[str, Any], *, hygienic: bool) -> Any:
        """Call the function of a macro, rewritten as the kernel is."""
        outer = None if hygienic else next(self.frames(), None)
        return self.launch.rewritten(function, {} if outer is None else dict(outer.f_locals))(*arguments, **keywords)

    def executes(self, kind: str) -> bool:
        """Whether an operation of the ``cube`` or the ``vector`` cores is executed here."""
        return self.kind in ("all", kind)

    def touches(self, buffer: Any, *, writes: bool = False) -> bool:
        """Before an access to an element: wait for earlier work of the other cores where they share the buffer. Whether this
        core
        makes it: a store to memory that cores share is one core's."""
        if self.kind == "all" or (buffer.own and buffer.space != "gm"):
            return True
        if writes and self.kind != (self.scope or "vector"):
            return False
        self.take_turn()
        return True

    def take_turn(self) -> None:
        """Wait until all cores have done what stands before this place in the kernel."""
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
        """The author's line that is executed."""
        frame = next(self.frames(), None)
        return None if frame is None else Location(frame.f_code.co_filename, frame.f_lineno)

    def site(self) -> tuple[int, ...]:
        """The lines that are executed, from the kernel's to that of the innermost macro."""
        return tuple(frame.f_lineno for frame in self.frames())[::-1]

    def position(self) -> tuple[int, ...]:
        """The place in the kernel's order of execution: lines and iterations, compared from the outermost."""
        return tuple(part for place, iteration in self.loops for part in (*place, iteration)) + self.site()

    @contextmanager
    def loop(self) -> Iterator[list[Any]]:
        """A loop: the number of its iteration is the second item of the list."""
        entry: list[Any] = [self.site() if self.kind != "all" else (), -1]
        self.loops.append(entry)
        try:
            yield entry
        finally:
            if any(entry is other for other in self.loops):
                while self.loops.pop() is not entry:
                    pass


def current() -> Core:
    """The core that this thread executes."""
    found: Core = THREAD.running
    return found


def fail(message: str, advice: str, code: str = "T111") -> TileError:
    """An error at the author's line."""
    return TileError(message, code=code, location=current().location(), help=advice)
