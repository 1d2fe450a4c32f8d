"""Executes a kernel: its blocks, its cores, and what the rewritten source asks for."""

from __future__ import annotations

import ast
import builtins
import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np
import threadpoolctl

from tilelang_npu.dispatch import THREAD
from tilelang_npu.errors import TileError
from tilelang_npu.interpreter import points
from tilelang_npu.interpreter.checking import WATCHED
from tilelang_npu.interpreter.channels import Channels
from tilelang_npu.interpreter.cores import Schedule
from tilelang_npu.interpreter.memory import Buffer, Element, Memory, Variable, integer
from tilelang_npu.interpreter.rewrite import executable
from tilelang_npu.interpreter.state import KERNEL_CODE, Core, current
from tilelang_npu.interpreter.values import (
    BOOL,
    FLOAT32,
    INT32,
    Index,
    NeedsPoints,
    Operators,
    Scalar,
    absolute,
    binary,
    cast,
    compare,
    is_literal,
    is_scalar,
    power,
    scalar,
    select,
    truth,
)
from tilelang_npu.target.dtypes import DType

_BLAS = threadpoolctl.ThreadpoolController()
Find = Callable[[FunctionType], tuple[ast.FunctionDef, str]]

_FLAGS = frozenset({"set_cross_flag", "wait_cross_flag", "sync_block_set", "sync_block_wait", "block_barrier", "subblock_barrier",
                    "sync_all"})
_CUBE = frozenset({"gemm", "gemm_v0", "mma", "npu_gemm", "npuir_dot", "alloc_L1", "alloc_L0A", "alloc_L0B", "alloc_L0C",
                   "load_nd2nz", "npuir_load_nd2nz"})


class NeedsCores(Exception):
    """A core reads what no earlier statement writes: it waits for another core of its block, so both must be executed."""


@dataclass
class Source:
    """A kernel's function and how to read others.

    Attributes:
        function: the author's function.
        node, file: its definition.
        names: values of names that its source finds beside those of its closure and module.
        find: gives the definition and the file of another function.
        resolve: gives a closure's value as a call knows it: sizes in place of symbolic dimensions.
    """

    function: FunctionType
    node: ast.FunctionDef
    file: str
    find: Find
    names: Mapping[str, Any] = field(default_factory=dict)
    resolve: Callable[[Any], Any] = lambda value: value


class Launch:
    """One execution of a kernel's function.

    Attributes:
        dialect: ``npuir`` or ``ascendc``.
        roles: of each allocating statement, the memory that the use of its buffers decides.
        schedule: the cores that are executed side by side; None where one stands for all.
        channels: tiles that a core reads before the kernel's order writes them.
    """

    schedule: Schedule

    def __init__(self, source: Source, arguments: Mapping[str, Any], dialect: str) -> None:
        self.source, self.dialect = source, dialect
        self.arguments = dict(arguments)
        self.roles: dict[object, str] = {}
        self.channels = Channels()
        self.shared: dict[object, Buffer] = {}
        self.probing = False
        self.first: list[tuple[Any, Any]] | None = []
        self.fifo = False
        self.written: dict[int, Buffer] = {}
        self._queues: dict[object, list[Any]] = {}
        self._functions: dict[FunctionType, FunctionType] = {}
        self._own: list[Buffer] = []
        self.vectors = 1
        self.blocks = 0
        watched, self._watched = WATCHED.get(), None
        if watched is not None:
            tensors = [value for value in self.arguments.values() if isinstance(value, Buffer)]
            self._watched = (tensors[watched[0]], *watched[1:]) if watched[0] < len(tensors) else None

    # --- the kernel ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Execute the kernel.

        Raises:
            TileError: what the kernel does wrong, at its line.
        """
        with _BLAS.limit(limits=1):  # tiles are too small to be worth several threads
            self._run()

    def _run(self) -> None:
        named = self._names_used(self.source.function, self.source.node, self.source.file, set())
        self._vector_number = _reads_vector_number(self.source.node) or any(
            _reads_vector_number(node) for node in self._macros)
        apart = bool(named & _FLAGS) or (self._vector_number and bool(named & _CUBE))
        if not apart:
            try:
                self._run_as_one()
                return
            except NeedsCores:
                self._put_back()
                self.fifo = True
        self._run_apart(2 if self._vector_number else 1)

    def _names_used(self, function: FunctionType, node: ast.FunctionDef, file: str, seen: set[FunctionType]) -> set[str]:
        """The names that the kernel and its macros mention."""
        if not seen:
            self._macros: list[ast.FunctionDef] = []
        seen.add(function)
        found = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
        found |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        for name in list(found):
            macro = _value_of_name(function, name, self.source.names)
            inner = getattr(macro, "function", None)
            if isinstance(inner, FunctionType) and hasattr(macro, "hygienic") and inner not in seen:
                below, place = self.source.find(inner)
                self._macros.append(below)
                found |= self._names_used(inner, below, place, seen)
        return found

    def _run_as_one(self) -> None:
        core = Core(self, "all")
        before, THREAD.running = THREAD.running, core
        try:
            with np.errstate(all="ignore"):
                self._call()
        finally:
            THREAD.running = before

    def _run_apart(self, vectors: int) -> None:
        self.vectors = vectors
        self._find_roles()
        for number in itertools.count():
            launched = self._blocks_of(number)
            if launched is None:
                return
            total = math.prod(launched)
            self.blocks = total
            self.schedule = Schedule(self._cores(total, vectors, number), self._execute)
            self.shared.clear()
            self.schedule.run()

    def _cores(self, blocks: int, vectors: int, number: int) -> Iterator[list[Core]]:
        for block in range(blocks):
            made = [Core(self, "cube"), *(Core(self, "vector", vector) for vector in range(vectors))]
            for core in made:
                core.block, core.kernel = block, number
            yield made

    def _execute(self, core: Core) -> None:
        with np.errstate(all="ignore"):
            self._call()

    def _blocks_of(self, number: int) -> tuple[int, ...] | None:
        """The grid of the kernel's ``number``-th launch; None where it has fewer."""
        core = Core(self, "all")
        core.kernel = -1
        before, THREAD.running = THREAD.running, core
        try:
            with np.errstate(all="ignore"):
                self._call()
        finally:
            THREAD.running = before
        return core.grids[number] if number < len(core.grids) else None

    def _find_roles(self) -> None:
        """Execute the first block on copies, to see which buffers are operands of products."""
        self.probing = True
        kept = {name: value.array for name, value in self.arguments.items() if isinstance(value, Buffer)}
        core = Core(self, "all")
        core.only = 0
        before, THREAD.running = THREAD.running, core
        try:
            for name, array in kept.items():
                self.arguments[name].array = array.copy()
            with np.errstate(all="ignore"), contextlib.suppress(Exception):  # values and order are those of no real core
                self._call()
        finally:
            THREAD.running = before
            self.probing = False
            for name, array in kept.items():
                self.arguments[name].array = array

    def _call(self) -> None:
        made = self.rewritten(self.source.function, self.source.names, self.source.node, self.source.file)
        made(**self.arguments)

    def rewritten(self, function: FunctionType, names: Mapping[str, Any] = {}, node: ast.FunctionDef | None = None,
                  file: str = "") -> FunctionType:
        """A function of the kernel in the form that Python executes."""
        found = self._functions.get(function) if not names or node is not None else None
        if found is None:
            if node is None:
                node, file = self.source.find(function)
            given = dict(names) if node is not self.source.node else {
                name: self.source.resolve(value) for name, value in names.items()}
            cells = {name: self.source.resolve(cell.cell_contents) for name, cell in
                     zip(function.__code__.co_freevars, function.__closure__ or (), strict=True) if _is_filled(cell)}
            given |= {name: self.source.resolve(value) for name in function.__code__.co_names
                      if (value := function.__globals__.get(name)) is not None and name not in given
                      and self.source.resolve(value) is not value}
            found = executable(function, node, file, given, cells, BUILTINS, KERNEL)
            KERNEL_CODE.add(found.__code__)
            if not names or node is self.source.node:
                self._functions[function] = found
        return found

    def queue(self, core: Core) -> list[Any]:
        """The tiles that the Cube core has sent by the statement that is executed, and that were not received."""
        return self._queues.setdefault((core.block, core.site()), [])

    def note(self, memory: Memory) -> None:
        """Note that a buffer is written: reading one that nothing has written means waiting for another core."""
        root = memory.buffer.root
        if id(root) not in self.written and root.space != "gm":
            self.written[id(root)] = root

    # --- what cores share ------------------------------------------------------------------------------------------------

    def own_tensor(self, core: Core, shape: Sequence[int], kind: DType) -> Buffer:
        """A global tensor that each launch makes, the same one for all cores."""
        core.made_tensors += 1
        place = core.made_tensors
        while len(self._own) < place:
            self._own.append(Buffer(np.zeros(tuple(shape), kind.numpy), kind, "gm", "tensor"))
        return self._own[place - 1]

    def before_write(self, memory: Memory) -> None:
        """Keep what a global tensor holds, as long as the launch may begin again with the cores side by side; note who writes an
        element that is watched."""
        buffer = memory.buffer
        if self._watched is not None and buffer.root is self._watched[0]:
            index = self._watched[1]
            places = zip(memory.offsets, memory.sizes, index, strict=True)
            if all(start <= place < start + size for start, size, place in places):
                self._watched[2].append((current().location(), current().block))
        if self.first is not None and buffer.space == "gm" and all(array is not buffer.array for array, _ in self.first):
            self.first.append((buffer.array, buffer.array.copy()))

    def first_block_is_over(self) -> None:
        """From here on the launch does not begin again."""
        self.first = None

    def _put_back(self) -> None:
        for array, content in self.first or ():
            array[...] = content
        self.first = None


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  (an empty cell raises)
    except ValueError:
        return False
    return True


def _value_of_name(function: FunctionType, name: str, names: Mapping[str, Any]) -> Any:
    """What a name means in a function, where that is known before it runs."""
    if name in names:
        return names[name]
    for free, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if free == name and _is_filled(cell):
            return cell.cell_contents
    return function.__globals__.get(name)


def _reads_vector_number(node: ast.FunctionDef) -> bool:
    """Whether the kernel reads the number of its Vector core, which is the last name of ``with T.Kernel(..., is_npu=True) as``."""
    read = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
    for frame in (part for part in ast.walk(node) if isinstance(part, ast.With)):
        for item in frame.items:
            call, target = item.context_expr, item.optional_vars
            if isinstance(call, ast.Call) and isinstance(target, (ast.Tuple, ast.List)) and getattr(
                    call.func, "attr", getattr(call.func, "id", "")) == "Kernel":
                axes = len(call.args)
                last = target.elts[-1]
                if len(target.elts) == axes + 1 and isinstance(last, ast.Name) and last.id in read:
                    return True
    return False


# --- what the rewritten source calls -----------------------------------------------------------------------------------------


class _Block:
    """One block: ``with`` gives the numbers of the block."""

    def __init__(self, core: Core, values: Any) -> None:
        self._core, self._values = core, values

    def __enter__(self) -> Any:
        return self._values

    def __exit__(self, *_: object) -> None:
        self._core.loops.clear()


class Kernel:
    """The name ``__kernel__`` of the rewritten source."""

    @staticmethod
    def blocks(frame: Any, names: int, used: bool) -> Iterator[_Block]:
        """The blocks that the core executes of a ``T.Kernel``."""
        core = current()
        launch = core.launch
        grid = tuple(integer(count) for count in frame.blocks)
        if any(count <= 0 for count in grid):
            raise TileError(f"T.Kernel: block counts {grid}", code="T406", location=core.location(),
                            help="a size or a number among the arguments makes the grid empty")
        core.grids.append(grid)
        if core.kernel is not None and len(core.grids) - 1 != core.kernel:
            return  # another core's, or only the grids are asked for
        numbers = [core.block] if core.kind != "all" else range(math.prod(grid))
        vectors = range(2) if core.kind == "all" and used and not launch.probing else [core.vector]
        for block in numbers if core.only is None else [core.only]:
            place, rest = [], block
            for count in grid:
                rest, index = divmod(rest, count)
                place.append(Index(index))
            for vector in vectors:
                core.block = block
                core.begin_block()
                values: Any = place if names <= len(grid) else [*place, Index(vector) if used else 0]
                yield _Block(core, values[0] if names <= 1 and len(values) == 1 else tuple(values))
            if core.kind == "all":
                launch.first_block_is_over()

    @staticmethod
    def loop(source: Any) -> Iterator[Any]:
        """The iterations of a ``for``."""
        core = current()
        kind = getattr(source, "kind", None)
        if kind == "Parallel":
            for one in points.passes(core, [integer(size) for size in source.extents], on_arrays=False):
                with one as place:
                    yield place
            return
        if kind == "Persistent":
            values: Any = _persistent(source)
        elif kind == "grid":
            values = (tuple(map(Index, place)) if len(place) > 1 else Index(place[0])
                      for place in np.ndindex(*(integer(size) for size in source.extents)))
        elif kind is not None:
            values = map(Index, range(*(integer(bound) for bound in source.extents)))
        else:
            values = source
        with core.loop() as entry:
            for value in values:
                entry[1] += 1
                yield value

    @staticmethod
    def parallel(source: Any, on_arrays: bool) -> Iterator[points.Pass]:
        """The executions of the body of a ``T.Parallel``."""
        extents = getattr(source, "extents", None)
        if getattr(source, "kind", None) != "Parallel" or extents is None:
            return (points.Pass(current(), [value], None) for value in source)
        return points.passes(current(), [integer(size) for size in extents], on_arrays=on_arrays)

    @staticmethod
    def endless() -> Iterator[int]:
        """The iterations of a ``while``, which leaves the loop itself."""
        with current().loop() as entry:
            for number in itertools.count():
                entry[1] = number
                yield number

    cases = staticmethod(points.cases)

    @staticmethod
    @contextlib.contextmanager
    def frame(opened: Any) -> Iterator[bool]:
        """A ``with`` of the language; whether its body is executed."""
        core, kind = current(), type(opened).__name__
        if kind == "Scope":
            outer, core.scope = core.scope, opened.core
            try:
                yield core.executes(opened.core)
            finally:
                core.scope = outer
        elif kind == "rs":
            core.pipes.append(opened.pipe)
            try:
                yield True
            finally:
                core.pipes.pop()
        elif kind == "If":
            core.conditions.append(bool(opened.condition))
            try:
                yield True
            finally:
                core.conditions.pop()
        elif kind in ("Then", "Else"):
            yield core.conditions[-1] is (kind == "Then")
        else:
            with opened as value:
                yield value if value is not None else True

    @staticmethod
    def values(names: Mapping[str, Any], *wanted: str) -> Any:
        """What names mean, to be put back after a loop that has variables of these names."""
        return tuple(names.get(name) for name in wanted)

    @staticmethod
    def read(value: Any) -> Any:
        """A value that gets a name: an element is read now."""
        if isinstance(value, Element) or (isinstance(value, Variable) and value.named):
            found = value.load()
            made = Scalar(found.value, found.kind, found.span)
            made.origin = value if isinstance(value, Element) else None
            return made
        if type(value) in (tuple, list) and any(isinstance(part, (Element, Variable)) for part in value):
            return type(value)(Kernel.read(part) for part in value)
        return value

    @staticmethod
    def assign(name: str, old: Any, value: Any) -> Any:
        """What a name means after an assignment."""
        if isinstance(old, Variable) and old.named and not (isinstance(value, Buffer) and not value.named):
            if isinstance(value, Memory) and not isinstance(value, Variable):
                raise TileError(f"{name} is a T.alloc_var scalar, and {value.describe()} is none", code="T141",
                                location=current().location(), help="another name holds the buffer")
            old.store(value)
            return old
        found = Kernel.read(value)
        for place, part in enumerate(found if isinstance(found, (list, tuple)) else [found]):
            if isinstance(part, Buffer) and not part.named:
                part.label = name if part is found else f"{name}_{place}"
                part.named = True
        return found

    # --- expressions -----------------------------------------------------------------------------------------------------

    @staticmethod
    def choose(condition: Any, chosen: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """``chosen if condition else other``: one side is evaluated, in the type where both meet."""
        if not isinstance(condition, Operators) or isinstance(condition, Index):
            return chosen() if condition else other()
        test = truth(condition)
        if np.ndim(test.value):
            a = points.under(test, True, chosen)
            b = points.under(test, False, other)
            return select(test, a, b)
        taken, left = (chosen, other) if test.value else (other, chosen)
        value = taken()
        try:
            beside = left()
        except (TileError, ArithmeticError, LookupError, ValueError, TypeError):
            return value  # what is not taken may have no value; then the other side has its own type
        if not (is_scalar(value) and is_scalar(beside)):
            return value
        return select(True, value, beside)

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
        if not isinstance(value, Operators):
            return not value
        return Scalar(np.logical_not(truth(value).value), BOOL)


def _logical(parts: Sequence[Callable[[], Any]], *, stops: bool) -> Any:
    result: Any = parts[0]()
    for part in parts[1:]:
        if isinstance(result, Operators):
            test = truth(result)
            if np.ndim(test.value):
                rest = truth(points.under(test, not stops, part))
                result = binary("or" if stops else "and", test, rest)
                continue
            if bool(test.value) is stops:
                return test
        elif bool(result) is stops:
            return result
        result = part()
    return result


def _persistent(source: Any) -> Iterator[Any]:
    """The tiles of a ``T.Persistent`` that a block takes: wave by wave, in bands of the last axis."""
    *domain, wave, group = (integer(size) for size in source.extents)
    total = math.prod(domain)
    group = min(group, domain[-1])
    group = group if domain[-1] % group == 0 else 1
    first = integer(source.index)
    for linear in range(first, total, wave):
        rest = linear
        place: list[int] = []
        for size in (group, *domain[-2::-1]):
            rest, index = divmod(rest, size)
            place.insert(0, index)
        place.append(rest * group + place.pop())
        yield tuple(map(Index, place)) if len(place) > 1 else Index(place[0])


KERNEL = Kernel()


# --- Python's builtins on scalars ----------------------------------------------------------------------------------------


def _of_scalars(function: Callable[..., Any], meaning: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        if any(isinstance(value, Operators) for value in arguments) and not keywords:
            return meaning(*arguments)
        return function(*arguments, **keywords)

    return call


def _fold(name: str) -> Callable[..., Any]:
    def fold(*values: Any) -> Any:
        result, *rest = values
        for value in rest:
            result = binary(name, result, value)
        return result

    return fold


def _range(*bounds: Any) -> Any:
    return map(Index, range(*(integer(bound) for bound in bounds)))


class _Type(type):
    """A builtin type that casts scalars of the kernel."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])


def _length(value: Any) -> Any:
    return len(value) if not isinstance(value, Memory) else value.shape[0]


BUILTINS: dict[str, Any] = {
    "min": _of_scalars(builtins.min, _fold("min")), "max": _of_scalars(builtins.max, _fold("max")),
    "abs": _of_scalars(builtins.abs, absolute), "pow": _of_scalars(builtins.pow, power), "range": _range, "len": _length,
}
"""What stands in place of Python's builtins in a kernel."""
del compare, cast, FLOAT32, INT32, NeedsPoints, is_literal, scalar
