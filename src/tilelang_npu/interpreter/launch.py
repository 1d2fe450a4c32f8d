"""Executes an interpreted kernel: its launches, blocks and cores, and the calls that the rewritten source contains."""

from __future__ import annotations

import ast
import builtins
import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CellType, FunctionType
from typing import Protocol, runtime_checkable

import numpy as np
import threadpoolctl

from tilelang_npu.card_signals import PollWait
from tilelang_npu.dispatch import THREAD
from tilelang_npu.errors import TileError
from tilelang_npu.interpreter import parallel_points
from tilelang_npu.interpreter.host_buffers import (
    AbsentTensor,
    HostBuffer,
    HostElement,
    LaunchBuffers,
    ScalarVariable,
    TileChannels,
    integer,
    is_tile,
)
from tilelang_npu.interpreter.rewrite import executable
from tilelang_npu.interpreter.running_core import KERNEL_CODE, Core, CoreSchedule, current, fail, wait_for_card
from tilelang_npu.interpreter.threads import Guard, RestOfGuard
from tilelang_npu.interpreter.typed_scalars import (
    BOOL,
    FLOAT32,
    INT32,
    Array,
    IndexInt,
    Operators,
    TypedScalar,
    absolute,
    binary,
    cast,
    is_scalar,
    power,
    select,
    truth,
)
from tilelang_npu.interpreter.vector_lanes import LaneVariable
from tilelang_npu.progress import Underway, shown
from tilelang_npu.source_dialects import TracedDialect
from tilelang_npu.symmetric_heap import rehearsal

_BLAS = threadpoolctl.ThreadpoolController()
_FLAGS = frozenset({"set_cross_flag", "wait_cross_flag", "sync_block_set", "sync_block_wait", "block_barrier",
                    "subblock_barrier", "sync_all", "sync_grid", "shmem_signal_wait_until", "shmem_barrier",
                    "shmem_barrier_all"})
_CUBE = frozenset({"gemm", "gemm_v0", "gemm_v0_fixp", "mma", "npu_gemm", "npuir_dot", "gemm_mx", "mma_mx", "alloc_L1",
                   "alloc_L1_scale_a", "alloc_L1_scale_b", "alloc_L0A", "alloc_L0B",
                   "alloc_L0C", "load_nd2nz", "npuir_load_nd2nz"})


class NeedsCores(Exception):
    """Raised if a core reads a tile that only a later statement writes.

    Another core of the block then writes the tile, so the cores must be executed concurrently.
    """


@dataclass
class KernelSource:
    """The source of a kernel's function, and a function to find the source of macros.

    Attributes:
        function: the author's function.
        node: the syntax tree of the function's definition.
        file: the path of the file with the definition.
        find: returns the definition and the file of another function.
        names: the values of names that the source uses and that are neither in the function's closure nor in its module.
        resolve: maps the value of a closure variable to the value in this call: a symbolic dimension to a size, and other
            values to themselves.
    """

    function: FunctionType
    node: ast.FunctionDef
    file: str
    find: Callable[[FunctionType], tuple[ast.FunctionDef, str]]
    names: Mapping[str, object] = field(default_factory=dict)
    resolve: Callable[[object], object] = lambda value: value


class InterpretedLaunch(LaunchBuffers):
    """One execution of a kernel's function, with all its launches.

    Attributes:
        dialect: the dialect of the kernel's source, ``npuir`` or ``ascendc``.
        arguments: the buffers and scalars that are passed to the function, by parameter name.
        operation: returns the function that executes the operation ``T.<name>``, given the name.
        vector_cores: the number of Vector cores for each Cube core of the chip.
        probing: whether the first block is being executed only to find the uses of buffers.
        fifo: whether tiles from L0C go to the Vector cores through queues, because cores read tiles that later statements
            write.
        channels: the tiles that a core reads at an earlier statement than the one with which another core writes them.
        schedule: the scheduler of the cores, if they are executed concurrently.
        blocks: the number of blocks of the current launch.
        vectors: the number of Vector cores per block.
        kinds: the kinds of cores that have operations of their own in the kernel, as far as one core has executed it.
        adds: whether the kernel has atomic operations.
        progress: the number of blocks of the launches so far, and of those that have been executed.
    """

    schedule: CoreSchedule
    progress: Underway

    def __init__(self, source: KernelSource, arguments: Mapping[str, HostBuffer | TypedScalar | AbsentTensor],
                 dialect: TracedDialect,
                 operation: Callable[[str], Callable[..., object]], vector_cores: int = 2, *, mask_tails: bool = False) -> None:
        super().__init__(mask_tails=mask_tails)
        self.source, self.dialect, self.arguments, self.operation = source, dialect, dict(arguments), operation
        self.vector_cores = vector_cores
        self.probing = self.fifo = self.adds = False
        self.channels = TileChannels()
        self.blocks, self.vectors = 0, 1
        self.kinds: set[str] = set()
        self._queues: dict[object, list[Array]] = {}
        self._functions: dict[FunctionType, FunctionType] = {}

    def run(self) -> None:
        """Executes the kernel.

        If the kernel does not distinguish cores, one thread executes the operations of all cores, block by block. Otherwise, or
        if a core reads a tile that only a later statement writes, the cores are executed concurrently.
        """
        nodes = list(self._definitions(self.source.function, self.source.node, set()))
        named = {getattr(part, "attr", getattr(part, "id", "")) for node in nodes for part in ast.walk(node)}
        self.adds = any("atomic" in name for name in named)
        # a loop of one block may poll for what later blocks of other cards send, so that all blocks have to run
        polls = any(isinstance(part, ast.While) for node in nodes for part in ast.walk(node)) and any(
            name.startswith("shmem_") for name in named)
        reads_number = any(_reads_vector_number(node, even_if_unread=self.adds and self.dialect == "ascendc") for node in nodes)
        with (_BLAS.limit(limits=1), np.errstate(all="ignore"),  # tiles are too small for several threads
              shown(f"interpreting {self.source.function.__name__},", 0, "blocks") as self.progress):
            if not named & _FLAGS and not polls and not (reads_number and named & _CUBE):
                try:
                    self._run_alone(Core(self, "all"))
                    return
                except NeedsCores:
                    self.fifo = True
                    self.progress.total = self.progress.done = 0
                    for array, content in self.before or ():
                        array[...] = content
                    self.before = None
            self._run_cores(counts=reads_number)

    @property
    def has_empty_argument(self) -> bool:
        """Whether an array that is passed to the function has no elements."""
        return any(isinstance(value, HostBuffer) and not value.array.size for value in self.arguments.values())

    def _definitions(self, function: FunctionType, node: ast.FunctionDef, seen: set[FunctionType]) -> Iterator[ast.FunctionDef]:
        """Yields the syntax trees of the definitions of a function and of the macros that it calls."""
        yield node
        closure = {name: cell.cell_contents for name, cell in _filled(function)}
        for name in {getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(node)}:
            macro = self.source.names.get(name, closure.get(name, function.__globals__.get(name)))
            inner = getattr(macro, "function", None)
            if isinstance(inner, FunctionType) and hasattr(macro, "hygienic") and inner not in seen:
                seen.add(inner)
                yield from self._definitions(inner, self.source.find(inner)[0], seen)

    def _run_alone(self, core: Core) -> Core:
        before, THREAD.running = THREAD.running, core
        try:
            self._call()
        finally:
            THREAD.running = before
        return core

    def _run_cores(self, *, counts: bool) -> None:
        """Executes the cores of each block concurrently.

        Args:
            counts: whether the kernel reads the number of the Vector core.
        """
        self.vectors, self.probing = 2 if counts else 1, True
        kept = [(value, value.array) for value in self.arguments.values() if isinstance(value, HostBuffer)]
        for buffer, array in kept:
            buffer.array = array.copy()
        copies = [buffer.array for buffer, _ in kept]
        # one core executes all of the first block, to find the uses of buffers; it may fail, as real cores wait for each other
        with rehearsal(copies, [array for _, array in kept]), contextlib.suppress(Exception):
            self._run_alone(Core(self, "all", only=0))
        for buffer, array in kept:
            buffer.array = array
        self.probing = False
        reached = self._run_alone(Core(self, "all", kernel=-1))
        for number, (grid, vectors) in enumerate(zip(reached.grids, reached.counted, strict=True)):
            self.blocks, self.vectors = math.prod(grid), vectors if counts else 1
            self.progress.total += self.blocks
            self.shared.clear()
            self.addressed.clear()
            self.schedule = CoreSchedule(self._cores(number), self._execute)
            self.schedule.run()

    def _cores(self, kernel: int) -> Iterator[list[Core]]:
        for block in range(self.blocks):
            yield [Core(self, "cube", 0, block, kernel),
                   *(Core(self, "vector", number, block, kernel) for number in range(self.vectors))]
            self.progress.done += 1

    def _execute(self, core: Core) -> None:
        with np.errstate(all="ignore"):
            self._call()

    def _call(self) -> None:
        self.rewritten(self.source.function, self.source.names)(**self.arguments)

    def rewritten(self, function: FunctionType, names: Mapping[str, object]) -> FunctionType:
        """Returns the executable form of the kernel's function or of a macro.

        Args:
            function: the author's function.
            names: the values of additional names that the function can use.
        """
        own = function is self.source.function
        found = self._functions.get(function)
        if found is None:
            node, file = (self.source.node, self.source.file) if own else self.source.find(function)
            resolve = self.source.resolve
            given = {name: resolve(value) for name, value in names.items()}
            given |= {name: resolved for name in function.__code__.co_names if name not in given
                      and (resolved := resolve(value := function.__globals__.get(name))) is not value}
            cells = {name: resolve(cell.cell_contents) for name, cell in _filled(function)}
            found = executable(function, node, file, given, cells, BUILTINS, RewrittenCalls)
            KERNEL_CODE.add(found.__code__)
            if own or not names:
                self._functions[function] = found
        return found

    def queue(self, core: Core) -> list[Array]:
        """Returns the queue of the statement that ``core`` executes: the list of the tiles that the Cube core has sent by this
        statement and that no core has received yet.
        """
        return self._queues.setdefault((core.block, core.site()), [])


def running_launch() -> InterpretedLaunch:
    """Returns the launch that this thread executes."""
    found = current().launch
    assert isinstance(found, InterpretedLaunch)
    return found


def _filled(function: FunctionType) -> Iterator[tuple[str, CellType]]:
    """Yields the names and values of those closure variables of a function that have a value."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):
            cell.cell_contents  # noqa: B018  (an empty cell raises)
            yield name, cell


def _reads_vector_number(node: ast.FunctionDef, *, even_if_unread: bool) -> bool:
    """Whether the kernel reads the number of its Vector core, the name after the block ids in ``with T.Kernel(...) as``.

    Args:
        even_if_unread: a name other than ``_`` is enough.
    """
    read = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
    items = [item for part in ast.walk(node) if isinstance(part, ast.With) for item in part.items]
    return any(isinstance(item.context_expr, ast.Call) and isinstance(item.optional_vars, (ast.Tuple, ast.List))
               and getattr(item.context_expr.func, "attr", getattr(item.context_expr.func, "id", "")) == "Kernel"
               and len(item.optional_vars.elts) == len(item.context_expr.args) + 1
               and isinstance(last := item.optional_vars.elts[-1], ast.Name)
               and (last.id in read or (even_if_unread and last.id != "_")) for item in items)


# --- what the rewritten source calls -----------------------------------------------------------------------------------------


class LaunchFrame(Protocol):
    """What is used of the object that ``T.Kernel`` returns."""

    blocks: Sequence[object]
    gpu_threads: tuple[int, ...]

    def counted_cores(self, available: int) -> int: ...


class OpenedFrame(Protocol):
    """What is used of the other objects in ``with``: the core of a ``T.Scope``, the pipe of a ``T.rs``, the condition of a
    ``T.If``."""

    core: str
    pipe: str
    condition: object


@runtime_checkable
class LoopSource(Protocol):
    """What is used of the object that a loop function of the language, such as ``T.Persistent``, returns."""

    kind: str
    extents: Sequence[object]
    index: object


class RewrittenCalls:
    """The functions that the rewritten source of a kernel calls; the source refers to the class as ``__kernel__``."""

    @staticmethod
    def blocks(frame: LaunchFrame, names: int, named: bool, read: bool) -> Iterator[contextlib.AbstractContextManager[object]]:
        """Yields, for each block of a ``T.Kernel`` that the core executes, a context manager that returns the block ids.

        Args:
            frame: the object that ``T.Kernel`` returned.
            names: the number of names after ``as``.
            named: whether the index of the Vector core has a name other than ``_``.
            read: whether the kernel reads the index of the Vector core. If so, the core executes the body as one of the Vector
                cores of the block. If not, all Vector cores of the block compute the same, and one execution is done for all of
                them, except in a kernel of the ascendc dialect that names the index and adds atomically: there each Vector core
                adds.

        Raises:
            TileError: T406, a block count is not positive, and not 0 for arguments without elements.
        """
        core, launch = current(), running_launch()
        used = read or (named and launch.adds and launch.dialect == "ascendc")
        grid = tuple(integer(count) for count in frame.blocks)
        if min(grid) < 0 or (min(grid) == 0 and not launch.has_empty_argument):
            raise fail(f"T.Kernel: the block counts {grid} are not all positive",
                       "check the sizes and numbers among the arguments, from which the block counts are computed", "T406")
        core.grids.append(grid)
        core.threads = frame.gpu_threads
        core.counted.append(frame.counted_cores(launch.vector_cores))
        if core.kernel not in (None, len(core.grids) - 1):
            return  # another launch is executed, or none: only the grids are needed
        if min(grid) == 0:
            return
        alone = core.kind != "all"
        vectors = [core.vector] if alone or not used or launch.probing else range(core.counted[-1])
        is_counted = not alone and core.only is None
        if is_counted:
            launch.progress.total += math.prod(grid)
        for block in [core.block] if alone else range(math.prod(grid)) if core.only is None else [core.only]:
            place, rest = [], block
            for count in grid:
                rest, index = divmod(rest, count)
                place.append(IndexInt(index))
            for vector in vectors:
                core.block, core.sub_block, core.allocated = block, vector, {}
                launch.addressed.pop(core, None)
                values: tuple[int, ...] = tuple(place) if names <= len(grid) else (*place, IndexInt(vector) if used else 0)
                yield contextlib.nullcontext(values[0] if len(values) == 1 else values)
            launch.progress.done += is_counted
            if not alone:
                launch.before = None  # the execution will not be restarted with concurrent cores

    @staticmethod
    def loop(source: LoopSource | Iterable[object]) -> Iterator[object]:
        """Yields the value of the loop variable, or the tuple of the loop variables, for each iteration of a ``for``."""
        values: Iterable[object]
        if not isinstance(source, LoopSource):
            values = source
        elif source.kind == "Parallel":
            for one in parallel_points.passes(current(), [integer(size) for size in source.extents], on_arrays=False):
                with one as place:
                    yield place
            return
        elif source.kind == "Persistent":
            values = _persistent(source)
        elif source.kind == "grid":
            values = map(_numbers, np.ndindex(*(max(0, integer(size)) for size in source.extents)))
        else:
            values = map(IndexInt, range(*(integer(bound) for bound in source.extents)))
        with current().loop() as entry:
            for value in values:
                entry.iteration += 1
                yield value

    @staticmethod
    def parallel(source: LoopSource | Iterable[object], on_arrays: bool) -> Iterator[parallel_points.Pass]:
        """Yields a context manager for each execution of the body of a ``T.Parallel``.

        Args:
            source: the object after ``in``.
            on_arrays: whether the body is first executed once on arrays, with all points of the loop at once.
        """
        if not isinstance(source, LoopSource):
            return (parallel_points.Pass(current(), [value], None) for value in source)
        return parallel_points.passes(current(), [integer(size) for size in source.extents], on_arrays=on_arrays)

    @staticmethod
    def endless() -> Iterator[PollWait]:
        """Yields an object for each iteration of a ``while``; the rewritten body tests the condition and leaves the loop by
        ``break``. After the test, it passes the object to :meth:`waits_in_vain`."""
        core = current()
        poll = PollWait(False, core.location(), (core.kind, core.block, core.vector))
        core.polls.append(poll)
        try:
            with core.loop() as entry:
                while True:
                    entry.iteration += 1
                    yield poll
                    poll.iterated([array.tobytes() for array in core.arrays] if poll.shared else None)
        finally:
            core.polls.remove(poll)

    @staticmethod
    def waits_in_vain(poll: PollWait) -> bool:
        """Waits for other cards if a ``while`` polls, and returns whether it is left although its condition holds."""
        if poll.shared:
            wait_for_card(poll)
        if poll.is_given_up():
            return True
        poll.begin()
        return False

    cases = staticmethod(parallel_points.cases)

    @staticmethod
    @contextlib.contextmanager
    def frame(opened: OpenedFrame) -> Iterator[bool]:
        """A context manager for a ``with`` block of the language; its value is whether the core executes the block's body."""
        core, kind = current(), type(opened).__name__
        if kind in ("Then", "Else"):
            yield core.conditions[-1] is (kind == "Then")
        elif kind == "Scope":
            outer, core.scope = core.scope, opened.core
            yield core.executes(opened.core)
            core.scope = outer
        elif kind in ("SimdVF", "SimtVF"):
            core.in_vector_function = True
            yield core.executes("vector")
            core.in_vector_function = False
        else:
            core.pipes.append(opened.pipe) if kind == "rs" else core.conditions.append(bool(opened.condition))
            yield True
            (core.pipes if kind == "rs" else core.conditions).pop()

    @staticmethod
    def values(names: Mapping[str, object], *wanted: str) -> tuple[object, ...]:
        """Returns the current values of names, which are restored after a loop whose variables have these names."""
        return tuple(names.get(name) for name in wanted)

    @staticmethod
    def read(value: object) -> object:
        """Returns the value that an assignment binds to a name: an element or a variable is read, other values are unchanged.
        """
        if isinstance(value, HostElement) or (isinstance(value, ScalarVariable) and value.named):
            found = value.load()
            made = TypedScalar(found.value, found.kind, found.span)
            made.origin = value if isinstance(value, HostElement) else None
            return made
        if isinstance(value, LaneVariable) and value.named and value.shape is None:
            return value.load()
        if isinstance(value, (tuple, list)) and type(value) in (tuple, list) and any(
                isinstance(part, (HostElement, ScalarVariable)) for part in value):
            return type(value)(RewrittenCalls.read(part) for part in value)
        return value

    @staticmethod
    def assign(name: str, old: object, value: object) -> object:
        """Executes an assignment, and returns the value that the name has afterwards.

        If the name refers to a ``T.alloc_var`` scalar, the value is stored to it, and the name still refers to it.

        Args:
            name: the name.
            old: the value of the name before the assignment; None if it has none.
            value: the assigned value.

        Raises:
            TileError: T141, a buffer is assigned to a ``T.alloc_var`` scalar.
        """
        if isinstance(old, LaneVariable) and old.shape is None and not isinstance(value, LaneVariable):
            old.store(value)
            return old
        if isinstance(old, ScalarVariable) and old.named and not (isinstance(value, HostBuffer) and not value.named):
            if is_tile(value):
                raise fail(f"{name} is a T.alloc_var scalar, but {value.describe()} is not a scalar",
                           "use another name for the buffer", "T141")
            old.store(value)
            return old
        found = RewrittenCalls.read(value)
        for place, part in enumerate(found if isinstance(found, (list, tuple)) else [found]):
            if isinstance(part, LaneVariable):
                part.named = True
            if isinstance(part, HostBuffer) and not part.named:
                part.label, part.named = name if part is found else f"{name}_{place}", True
        return found

    @staticmethod
    def choose(condition: object, chosen: Callable[[], object], other: Callable[[], object]) -> object:
        """Returns the value of ``chosen if condition else other``, converted to the common type of both sides.

        Args:
            condition: the condition.
            chosen: evaluates the value for a true condition.
            other: evaluates the value for a false condition.
        """
        if not isinstance(condition, Operators):
            return chosen() if condition else other()
        test = truth(condition)
        if np.ndim(test.value):
            return select(test, parallel_points.under(test, True, chosen), parallel_points.under(test, False, other))
        value, untaken = (chosen if test.value else other)(), None
        with contextlib.suppress(TileError, ArithmeticError, LookupError, ValueError, TypeError):
            untaken = (other if test.value else chosen)()  # for its type alone: the side that is not taken may raise
        return select(True, value, untaken) if is_scalar(value) and is_scalar(untaken) else value

    @staticmethod
    def number(kind: Callable[[object], object], value: object) -> object:
        """Returns ``int(value)``, ``float(value)`` or ``bool(value)``; for a scalar of the kernel, the result is a scalar of
        type ``int32``, ``float32`` or ``bool``."""
        if isinstance(value, Operators):
            return cast(value, INT32 if kind is int else FLOAT32 if kind is float else BOOL)
        return kind(value)

    @staticmethod
    def test(condition: object) -> object:
        """Returns the condition of an ``if`` without an ``else`` part; for a condition on a thread, whether one has it."""
        return condition.sides[0] if isinstance(condition, Guard) else condition

    @staticmethod
    def logical(stops: bool, *parts: Callable[[], object]) -> object:
        """Returns the value of ``a or b or ...`` (of ``a and b and ...``), given functions that evaluate the operands.

        Args:
            stops: the truth value at which the evaluation stops: True for ``or``, False for ``and``.
            parts: the functions that evaluate the operands.
        """
        result = parts[0]()
        for part in parts[1:]:
            if isinstance(result, Operators):
                test = truth(result)
                if np.ndim(test.value):
                    result = binary("or" if stops else "and", test, truth(parallel_points.under(test, not stops, part)))
                    continue
                if bool(test.value) is stops:
                    return test
            elif isinstance(result, Guard) and not stops:
                return RestOfGuard(result, RewrittenCalls.logical(False, *parts[1:]) if result.sides[0] else False)
            elif bool(result) is stops:
                return result
            result = part()
        return result

    @staticmethod
    def negation(value: object) -> TypedScalar | bool:
        """Returns ``not value``; for a scalar of the kernel, the result is a scalar of type ``bool``."""
        return TypedScalar(np.logical_not(truth(value).value), BOOL) if isinstance(value, Operators) else not value


def _numbers(place: Sequence[int]) -> IndexInt | tuple[IndexInt, ...]:
    """Returns loop variables as one number or, if there are several, as a tuple of numbers."""
    return tuple(map(IndexInt, place)) if len(place) > 1 else IndexInt(place[0])


def _persistent(source: LoopSource) -> Iterator[IndexInt | tuple[IndexInt, ...]]:
    """Yields the tiles of a ``T.Persistent`` that a block computes; tiles are visited in bands along the last axis."""
    *domain, wave, group = (integer(size) for size in source.extents)
    group = min(group, domain[-1])
    group = group if domain[-1] % group == 0 else 1
    for rest in range(integer(source.index), math.prod(domain), wave):
        place: list[int] = []
        for size in (group, *domain[-2::-1]):
            rest, index = divmod(rest, size)
            place.insert(0, index)
        yield _numbers([*place[:-1], rest * group + place[-1]])


# --- Python's builtins on scalars ----------------------------------------------------------------------------------------


def _of_scalars(function: Callable[..., object], meaning: Callable[..., object]) -> Callable[..., object]:
    def call(*arguments: object, **keywords: object) -> object:
        on_scalars = any(isinstance(value, (Operators, IndexInt)) for value in arguments) and not keywords
        return meaning(*arguments) if on_scalars else function(*arguments, **keywords)

    return call


def _fold(name: str) -> Callable[..., object]:
    return lambda *values: list(itertools.accumulate(values, lambda left, right: binary(name, left, right)))[-1]


BUILTINS: dict[str, Callable[..., object]] = {
    "min": _of_scalars(builtins.min, _fold("min")), "max": _of_scalars(builtins.max, _fold("max")),
    "abs": _of_scalars(builtins.abs, absolute), "pow": _of_scalars(builtins.pow, power),
    "range": lambda *bounds: [IndexInt(place) for place in range(*(integer(bound) for bound in bounds))]}
"""For the name of each Python builtin that is replaced in a kernel, the replacement, which also accepts scalars of the kernel.
"""
