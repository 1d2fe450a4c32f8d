"""Executes a kernel: its blocks, its cores, and the calls of the rewritten source."""

from __future__ import annotations

import ast
import builtins
import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np
import threadpoolctl

from tilelang_npu.dispatch import THREAD
from tilelang_npu.errors import Location, TileError
from tilelang_npu.interpreter import parallel_points
from tilelang_npu.interpreter.core_schedule import CoreSchedule, TileChannels
from tilelang_npu.interpreter.host_buffers import HostBuffer, HostElement, ScalarVariable, TileRef, integer
from tilelang_npu.interpreter.rewrite import executable
from tilelang_npu.interpreter.running_core import KERNEL_CODE, Core, current, fail
from tilelang_npu.interpreter.typed_scalars import (
    BOOL,
    FLOAT32,
    INT32,
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
from tilelang_npu.target.dtypes import DType

_BLAS = threadpoolctl.ThreadpoolController()
_FLAGS = frozenset({"set_cross_flag", "wait_cross_flag", "sync_block_set", "sync_block_wait", "block_barrier",
                    "subblock_barrier", "sync_all"})
_CUBE = frozenset({"gemm", "gemm_v0", "mma", "npu_gemm", "npuir_dot", "alloc_L1", "alloc_L0A", "alloc_L0B", "alloc_L0C",
                   "load_nd2nz", "npuir_load_nd2nz"})


@dataclass(frozen=True)
class Write:
    """A statement that has written an element: its line, its block, the tile that it wrote."""

    line: Location | None
    block: int
    tile: str


WATCHED: ContextVar[tuple[str, tuple[int, ...], list[Write]] | None] = ContextVar("tilelang_npu_watched_element", default=None)
"""An element, by parameter and index, and the list that collects the statements which write it."""


class NeedsCores(Exception):
    """A core reads a tile that no earlier statement writes: another core of its block does, so the cores must run concurrently.
    """


@dataclass
class KernelSource:
    """A kernel's function, and how to read other functions.

    Attributes:
        function, node, file: the author's function and its definition.
        find: returns the definition and the file of another function.
        names: values of names that the source uses and that are not in its closure or module.
        resolve: returns the value of a closure variable in this call: sizes in place of symbolic dimensions.
    """

    function: FunctionType
    node: ast.FunctionDef
    file: str
    find: Callable[[FunctionType], tuple[ast.FunctionDef, str]]
    names: Mapping[str, Any] = field(default_factory=dict)
    resolve: Callable[[Any], Any] = lambda value: value


class InterpretedLaunch:
    """One execution of a kernel's function.

    Attributes:
        dialect: ``npuir`` or ``ascendc``.
        arguments: buffers and scalars by parameter.
        operation: returns the function that executes ``T.<name>``.
        roles: for each allocating statement the memory that the uses of its buffers decide.
        shared: buffers that cores share, by block and allocating statement.
        probing: whether the first block is being executed only to find the uses of buffers.
        fifo: whether tiles from L0C go to the Vector cores through queues, as cores wait for later statements of each other.
        channels: tiles that a core reads before the kernel's order writes them.
        schedule: the cores that run concurrently.
        blocks, vectors: the number of blocks of the launch, and of Vector cores of a block.
        written: the buffers on chip that have been written.
        adds: whether the kernel makes atomic updates.
    """

    schedule: CoreSchedule

    def __init__(self, source: KernelSource, arguments: Mapping[str, Any], dialect: str,
                 operation: Callable[[str], Callable[..., Any]]) -> None:
        self.source, self.dialect, self.arguments, self.operation = source, dialect, dict(arguments), operation
        self.roles: dict[object, str] = {}
        self.shared: dict[object, Any] = {}
        self.probing = self.fifo = self.adds = False
        self.channels = TileChannels()
        self.blocks, self.vectors = 0, 1
        self.written: set[HostBuffer] = set()
        self._before: list[tuple[Any, Any]] | None = []
        self._queues: dict[object, list[Any]] = {}
        self._functions: dict[FunctionType, FunctionType] = {}
        self._tensors: dict[object, HostBuffer] = {}

    def run(self) -> None:
        """Executes the kernel."""
        nodes = list(self._definitions(self.source.function, self.source.node, set()))
        named = {getattr(part, "attr", getattr(part, "id", "")) for node in nodes for part in ast.walk(node)}
        self.adds = any("atomic" in name for name in named)
        reads_number = any(_reads_vector_number(node, even_if_unread=self.adds and self.dialect == "ascendc") for node in nodes)
        with _BLAS.limit(limits=1), np.errstate(all="ignore"):  # tiles are too small for several threads
            if not named & _FLAGS and not (reads_number and named & _CUBE):
                try:
                    self._run_alone(Core(self, "all"))
                    return
                except NeedsCores:
                    self.fifo = True
                    for array, content in self._before or ():
                        array[...] = content
                    self._before = None
            self._run_cores(2 if reads_number else 1)

    def _definitions(self, function: FunctionType, node: ast.FunctionDef, seen: set[FunctionType]) -> Iterator[ast.FunctionDef]:
        """The definitions of the kernel and of its macros."""
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

    def _run_cores(self, vectors: int) -> None:
        self.vectors, self.probing = vectors, True
        kept = {name: value.array for name, value in self.arguments.items() if isinstance(value, HostBuffer)}
        for name, array in kept.items():
            self.arguments[name].array = array.copy()
        # one core executes all of the first block, to find the uses of buffers; it may fail, as real cores wait for each other
        with contextlib.suppress(Exception):
            self._run_alone(Core(self, "all", only=0))
        for name, array in kept.items():
            self.arguments[name].array = array
        self.probing = False
        for number, grid in enumerate(self._run_alone(Core(self, "all", kernel=-1)).grids):
            self.blocks = math.prod(grid)
            self.shared.clear()
            self.schedule = CoreSchedule(self._cores(number), self._execute)
            self.schedule.run()

    def _cores(self, kernel: int) -> Iterator[list[Core]]:
        for block in range(self.blocks):
            yield [Core(self, "cube", 0, block, kernel),
                   *(Core(self, "vector", number, block, kernel) for number in range(self.vectors))]

    def _execute(self, core: Core) -> None:
        with np.errstate(all="ignore"):
            self._call()

    def _call(self) -> None:
        self.rewritten(self.source.function, self.source.names)(**self.arguments)

    def rewritten(self, function: FunctionType, names: Mapping[str, Any]) -> FunctionType:
        """A function of the kernel in the form that Python executes; ``names`` are further names that it can use."""
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

    def queue(self, core: Core) -> list[Any]:
        """The tiles that the Cube core has sent with the statement that is being executed, and that were not received yet."""
        return self._queues.setdefault((core.block, core.site()), [])

    def own_tensor(self, key: object, shape: Sequence[int], kind: DType) -> HostBuffer:
        """The global tensor that a statement of the kernel allocates, the same one for all cores."""
        if key not in self._tensors:
            self._tensors[key] = HostBuffer(np.zeros(tuple(shape), kind.numpy), kind, "gm", "tensor")
        return self._tensors[key]

    def before_write(self, memory: TileRef) -> None:
        """Notes a write. The contents of a global tensor are saved while the launch may start again with concurrent cores."""
        buffer = memory.buffer
        if buffer.space != "gm":
            self.written.add(buffer.root)
            return
        watched = WATCHED.get()
        if watched is not None and buffer.label == watched[0] and all(
                start <= at < start + size for start, size, at in zip(memory.offsets, memory.sizes, watched[1], strict=True)):
            tile = ", ".join(f"{start}:{start + size}" for start, size in zip(memory.offsets, memory.sizes, strict=True))
            watched[2].append(Write(current().location(), current().block, f"{buffer.label}[{tile}]"))
        if self._before is not None and all(array is not buffer.array for array, _ in self._before):
            self._before.append((buffer.array, buffer.array.copy()))

    def first_block_is_over(self) -> None:
        """From now on the launch does not start again."""
        self._before = None


def _filled(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The cells of a closure that have a value."""
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


class RewrittenCalls:
    """The object that the rewritten source calls ``__kernel__``."""

    @staticmethod
    def blocks(frame: Any, names: int, named: bool, read: bool) -> Iterator[contextlib.AbstractContextManager[Any]]:
        """The blocks of a ``T.Kernel`` that the core executes, each as a context manager that gives the block ids.

        Args:
            frame: what ``T.Kernel`` returned.
            names: number of names after ``as``.
            named, read: whether the number of the Vector core has a name, and whether the kernel reads it. Both Vector cores
                of an ascendc block execute the same work if it is not read, which shows only in atomic updates.
        """
        core = current()
        used = read or (named and core.launch.adds and core.launch.dialect == "ascendc")
        grid = tuple(integer(count) for count in frame.blocks)
        if min(grid) <= 0:
            raise fail(f"T.Kernel: block counts {grid}", "a size or a number among the arguments makes the grid empty", "T406")
        core.grids.append(grid)
        if core.kernel not in (None, len(core.grids) - 1):
            return  # another launch is executed, or none: only the grids are needed
        alone = core.kind != "all"
        vectors = [core.vector] if alone or not used or core.launch.probing else [0, 1]
        for block in [core.block] if alone else range(math.prod(grid)) if core.only is None else [core.only]:
            place, rest = [], block
            for count in grid:
                rest, index = divmod(rest, count)
                place.append(IndexInt(index))
            for vector in vectors:
                core.block, core.allocated, core.addressed = block, {}, {}
                values = tuple(place) if names <= len(grid) else (*place, IndexInt(vector) if used else 0)
                yield contextlib.nullcontext(values[0] if len(values) == 1 else values)
            if not alone:
                core.launch.first_block_is_over()

    @staticmethod
    def loop(source: Any) -> Iterator[Any]:
        """The iterations of a ``for``."""
        kind, extents = getattr(source, "kind", None), getattr(source, "extents", ())
        values: Any = source
        if kind == "Parallel":
            for one in parallel_points.passes(current(), [integer(size) for size in extents], on_arrays=False):
                with one as place:
                    yield place
            return
        if kind == "Persistent":
            values = _persistent(source)
        elif kind == "grid":
            values = map(_numbers, np.ndindex(*(max(0, integer(size)) for size in extents)))
        elif kind is not None:
            values = map(IndexInt, range(*(integer(bound) for bound in extents)))
        with current().loop() as entry:
            for value in values:
                entry[1] += 1
                yield value

    @staticmethod
    def parallel(source: Any, on_arrays: bool) -> Iterator[parallel_points.Pass]:
        """The executions of the body of a ``T.Parallel``."""
        if getattr(source, "kind", None) != "Parallel":
            return (parallel_points.Pass(current(), [value], None) for value in source)
        return parallel_points.passes(current(), [integer(size) for size in source.extents], on_arrays=on_arrays)

    @staticmethod
    def endless() -> Iterator[None]:
        """The iterations of a ``while``, whose body leaves the loop."""
        with current().loop() as entry:
            while True:
                entry[1] += 1
                yield

    cases = staticmethod(parallel_points.cases)

    @staticmethod
    @contextlib.contextmanager
    def frame(opened: Any) -> Iterator[bool]:
        """A ``with`` of the language; yields whether its body is executed."""
        core, kind = current(), type(opened).__name__
        if kind in ("Then", "Else"):
            yield core.conditions[-1] is (kind == "Then")
        elif kind == "Scope":
            outer, core.scope = core.scope, opened.core
            yield core.executes(opened.core)
            core.scope = outer
        else:
            stack: list[Any] = core.pipes if kind == "rs" else core.conditions
            stack.append(opened.pipe if kind == "rs" else bool(opened.condition))
            yield True
            stack.pop()

    @staticmethod
    def values(names: Mapping[str, Any], *wanted: str) -> Any:
        """The values of names, which are restored after a loop that has variables of these names."""
        return tuple(names.get(name) for name in wanted)

    @staticmethod
    def read(value: Any) -> Any:
        """A value that is bound to a name: an element is read now."""
        if isinstance(value, HostElement) or (isinstance(value, ScalarVariable) and value.named):
            found = value.load()
            made = TypedScalar(found.value, found.kind, found.span)
            made.origin = value if isinstance(value, HostElement) else None
            return made
        if type(value) in (tuple, list) and any(isinstance(part, (HostElement, ScalarVariable)) for part in value):
            return type(value)(RewrittenCalls.read(part) for part in value)
        return value

    @staticmethod
    def assign(name: str, old: Any, value: Any) -> Any:
        """The value of a name after an assignment."""
        if isinstance(old, ScalarVariable) and old.named and not (isinstance(value, HostBuffer) and not value.named):
            if isinstance(value, TileRef) and not isinstance(value, ScalarVariable):
                raise fail(f"{name} is a T.alloc_var scalar, and {value.describe()} is none", "another name holds it", "T141")
            old.store(value)
            return old
        found = RewrittenCalls.read(value)
        for place, part in enumerate(found if isinstance(found, (list, tuple)) else [found]):
            if isinstance(part, HostBuffer) and not part.named:
                part.label, part.named = name if part is found else f"{name}_{place}", True
        return found

    @staticmethod
    def choose(condition: Any, chosen: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """``chosen if condition else other``: one side is evaluated, and converted to the common type of both."""
        if not isinstance(condition, Operators):
            return chosen() if condition else other()
        test = truth(condition)
        if np.ndim(test.value):
            return select(test, parallel_points.under(test, True, chosen), parallel_points.under(test, False, other))
        value, beside = (chosen if test.value else other)(), None
        with contextlib.suppress(TileError, ArithmeticError, LookupError, ValueError, TypeError):
            beside = (other if test.value else chosen)()  # for its type alone: the side that is not taken may raise
        return select(True, value, beside) if is_scalar(value) and is_scalar(beside) else value

    @staticmethod
    def number(kind: type, value: Any) -> Any:
        """``int(value)``, ``float(value)`` or ``bool(value)``; for a scalar of the kernel an int32, a float32 or a truth value.
        """
        return cast(value, {int: INT32, float: FLOAT32, bool: BOOL}[kind]) if isinstance(value, Operators) else kind(value)

    @staticmethod
    def both(*parts: Callable[[], Any]) -> Any:
        """``a and b and ...``."""
        return _logical(parts, stops=False)

    @staticmethod
    def either(*parts: Callable[[], Any]) -> Any:
        """``a or b or ...``."""
        return _logical(parts, stops=True)

    @staticmethod
    def negation(value: Any) -> Any:
        """``not value``."""
        return TypedScalar(np.logical_not(truth(value).value), BOOL) if isinstance(value, Operators) else not value


def _logical(parts: Sequence[Callable[[], Any]], *, stops: bool) -> Any:
    result: Any = parts[0]()
    for part in parts[1:]:
        if isinstance(result, Operators):
            test = truth(result)
            if np.ndim(test.value):
                result = binary("or" if stops else "and", test, truth(parallel_points.under(test, not stops, part)))
                continue
            if bool(test.value) is stops:
                return test
        elif bool(result) is stops:
            return result
        result = part()
    return result


def _numbers(place: Sequence[int]) -> Any:
    """Loop variables: one number, or a tuple of them."""
    return tuple(map(IndexInt, place)) if len(place) > 1 else IndexInt(place[0])


def _persistent(source: Any) -> Iterator[Any]:
    """The tiles of a ``T.Persistent`` that a block computes, in bands along the last axis."""
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


def _of_scalars(function: Callable[..., Any], meaning: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        on_scalars = any(isinstance(value, (Operators, IndexInt)) for value in arguments) and not keywords
        return meaning(*arguments) if on_scalars else function(*arguments, **keywords)

    return call


def _fold(name: str) -> Callable[..., Any]:
    return lambda *values: list(itertools.accumulate(values, lambda left, right: binary(name, left, right)))[-1]


BUILTINS: dict[str, Any] = {
    "min": _of_scalars(builtins.min, _fold("min")), "max": _of_scalars(builtins.max, _fold("max")),
    "abs": _of_scalars(builtins.abs, absolute), "pow": _of_scalars(builtins.pow, power),
    "range": lambda *bounds: [IndexInt(place) for place in range(*(integer(bound) for bound in bounds))]}
"""The replacements of Python's builtins in a kernel."""
