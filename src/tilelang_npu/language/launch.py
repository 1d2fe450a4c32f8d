"""Launch, cores, pipes and loops: the objects that a kernel uses after ``with`` and ``for``.

They only describe a frame or a loop; the front end reads them and opens the region in the IR.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeGuard, TypeVar, overload

from tilelang_npu.errors import TileError
from tilelang_npu.language.loop_schedule import Schedule, schedule
from tilelang_npu.traced.active_trace import Trace, TracedValue
from tilelang_npu.traced.author import user_location
from tilelang_npu.traced.symbols import Sym

if TYPE_CHECKING:
    from tilelang_npu.language.elements import Whole

V = TypeVar("V")
PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL")


class Frame:
    """The object of a ``with`` statement of a kernel. Only the front end enters it."""

    def __enter__(self) -> Any:  # what `as` names in a kernel: block ids
        self._refuse()

    def __exit__(self, *_: object) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise TileError(f"`with T.{type(self).__name__}` must be in the source of a @T.prim_func or @T.macro", code="T160",
                        location=user_location(),
                        help="a plain Python helper runs natively; make it a @T.macro")


class Blocks(int):
    """The type of the name in ``with T.Kernel(...) as``, for type checkers: one block id, or several when it is unpacked."""

    def __iter__(self) -> Iterator[int]:
        return iter((int(self),))


class Kernel(Frame):
    """The launch of a kernel: ``with T.Kernel(blocks, is_npu=True) as (cid, vid):`` executes its body once for each block.

    Example: ``T.Kernel(T.ceildiv(M, 128), is_npu=True)``

    Args:
        blocks: the number of blocks along 1 to 3 axes of the grid; block ids are numbered with the first axis fastest.
        threads: with ``is_npu`` the number of Vector cores of a block, 1 or 2; the compiler divides the block's work between
            them. Without ``is_npu`` any positive number, which has no effect.
        is_npu: whether the kernel is written for an NPU. The index of the Vector core in its block (0 or 1) then follows the
            block ids: ``as (i, j, vid)``. Kernels that leave the cores to the compiler do not need it: ``as (i, j, _)``.
        is_cpu, prelude, pipeline: accepted where they have no effect.

    Raises:
        TileError: T150, a block count or a thread count is not a positive integer; T190, an argument that is not supported.
    """

    def __init__(self, *blocks: Whole, threads: int | Sequence[int] | None = None, is_cpu: bool = False,
                 prelude: str | None = None, is_npu: bool = False, pipeline: bool = False) -> None:
        for name, value in (("is_cpu", is_cpu), ("prelude", prelude), ("pipeline", pipeline)):
            if value:
                raise TileError(f"T.Kernel: {name}={value!r} is not supported yet", code="T190", help="leave it out")
        if not 1 <= len(blocks) <= 3:
            raise TileError(f"T.Kernel takes 1 to 3 block counts, not {len(blocks)}", code="T150",
                            help="fold more axes into one: T.Kernel(a * b, ...) and // and % of the block id" if blocks else
                            "write how many blocks run: T.Kernel(blocks, is_npu=True)")
        for axis, count in enumerate(blocks):
            if isinstance(count, (int, float)) and (isinstance(count, (bool, float)) or count <= 0):
                raise TileError(f"T.Kernel: block count {count!r} of axis {axis} is not a positive integer", code="T150",
                                help="T.ceildiv(size, block) counts the blocks of a size")
        self.blocks = blocks
        self.threads = _threads(threads)
        self.is_npu = bool(is_npu)

    def __enter__(self) -> Blocks:
        self._refuse()


def _threads(threads: object) -> int | None:
    if threads is None:
        return None
    counts: list[object] = list(threads) if isinstance(threads, (list, tuple)) else [threads]
    known = [count for count in counts if isinstance(count, int) and not isinstance(count, bool) and count > 0]
    if not known or len(known) < len(counts):
        raise TileError(f"T.Kernel: threads={threads!r} is not a positive integer", code="T150",
                        help="give 1 or 2, the number of vector cores per block, or leave it out")
    return math.prod(known)


class Scope(Frame):
    """Execute the body on one kind of core: ``"C"`` or ``"Cube"``, ``"V"`` or ``"Vector"``.

    Example: ``T.Scope("C")``

    Raises:
        TileError: T150, another name.
    """

    CORES = {"C": "cube", "Cube": "cube", "V": "vector", "Vector": "vector"}

    def __init__(self, name: str) -> None:
        if name not in self.CORES:
            raise TileError(f"T.Scope takes 'C'/'Cube' or 'V'/'Vector', not {name!r}", code="T150",
                            help="write T.Scope('C') or T.Scope('V')")
        self.core = self.CORES[name]


class If(Frame):
    """The same as ``if``: its body holds ``with T.Then():`` and at most one ``with T.Else():``.

    Example: ``T.If(n > 0)``
    """

    def __init__(self, condition: object) -> None:
        self.condition = condition


class Then(Frame):
    """The statements that a ``T.If`` executes where its condition holds.

    Example: ``T.Then()``
    """


class Else(Frame):
    """The statements that a ``T.If`` executes where its condition does not hold.

    Example: ``T.Else()``
    """


class rs(Frame):
    """Name the pipe that ``T.set_flag``, ``T.wait_flag`` and cross-core flags in the body belong to (npuir).

    Other operations are not affected. The name is checked at the first flag in the body.

    Example: ``T.rs("PIPE_MTE2")``

    Raises:
        TileError: T161, the argument is not a text, or is empty.
    """

    def __init__(self, pipe: str) -> None:
        if not isinstance(pipe, str) or not pipe:
            raise TileError(f"T.rs: there is no pipe {pipe!r}", code="T161", help="pipes are " + ", ".join(PIPES))
        self.pipe = pipe


def pipe_name(spelling: object, what: str) -> str:
    """Returns the name of a pipe, ``"MTE2"`` for ``"mte2"`` and ``"PIPE_MTE2"``.

    Raises:
        TileError: T161, no such pipe.
    """
    name = str(spelling).upper().removeprefix("PIPE_") if isinstance(spelling, str) else ""
    if name not in PIPES:
        raise TileError(f"{what}: there is no pipe {spelling!r}", code="T161", help="pipes are " + ", ".join(PIPES))
    return name


@dataclass(frozen=True)
class Loop(Generic[V]):
    """The object of a ``for`` statement of a kernel.

    Attributes:
        kind: the name of the function that made it.
        extents: ``(start, stop, step)``; for ``Parallel`` and ``grid`` the size of each axis; for ``Persistent`` the sizes of
            the domain, the number of blocks and the group size.
        num_stages: the pipeline depth that the author asks for; 0 for none.
        index: the block id, for ``Persistent``.
        cross_interval: the number of iterations that the author asks to share a flag between the cores.
        schedule: the schedule of the statements that the author gives.
    """

    kind: Literal["serial", "range", "unroll", "Pipelined", "Parallel", "Persistent", "grid", "parallel", "vectorized"]
    extents: tuple[object, ...]
    num_stages: int = 0
    index: object = None
    cross_interval: int = 1
    schedule: Schedule | None = None

    def __iter__(self) -> Iterator[V]:
        raise TileError(f"T.{self.kind} can only be used after `for` in the source of a kernel", code="T141",
                        location=user_location(),
                        help="a plain Python helper runs natively: make it a @T.macro")


def _bounds(kind: str, start: object, stop: object, step: object = 1) -> tuple[object, object, object]:
    if stop is None:
        start, stop = 0, start
    for bound in (start, stop, step):
        if isinstance(bound, range):
            given = [bound.start, bound.stop, bound.step] if bound.step != 1 else [bound.start, bound.stop][not bound.start:]
            raise TileError(f"T.{kind} takes the bounds themselves, not {bound!r}", code="T150",
                            help=f"write T.{kind}({', '.join(map(str, given))})")
        if not (_is_integer(bound) or isinstance(bound, (Sym, TracedValue))):
            raise TileError(f"T.{kind}: bound {bound!r} is not an integer", code="T150",
                            help="use // instead of / where both sides are integers")
    if _is_integer(step) and step <= 0:
        raise TileError(f"T.{kind}: step {step} is not positive", code="T150",
                        help="count up, and compute the descending index in the body")
    return start, stop, step


def _is_integer(value: object) -> TypeGuard[int]:
    return hasattr(value, "__index__") and not isinstance(value, (bool, float, Sym, TracedValue))


def _refuse(kind: str, **arguments: object) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise TileError(f"T.{kind}: argument {name!r} is not supported yet", code="T190", help="leave it out")


def serial(start: Whole, stop: Whole | None = None, step: Whole = 1, *, annotations: Mapping[str, object] | None = None
           ) -> Loop[int]:
    """``for i in T.serial(stop)`` or ``T.serial(start, stop, step)``: execute the body for one value of ``i`` after another.

    ``annotations`` is empty.

    Example: ``T.serial(0, n, 2)``

    Raises:
        TileError: T150, a bound is not an integer, or the step not positive; T190, ``annotations``.
    """
    _refuse("serial", annotations=annotations or None)
    return Loop("serial", _bounds("serial", start, stop, step))


def unroll(start: Whole, stop: Whole | None = None, step: Whole = 1, *, annotations: Mapping[str, object] | None = None
           ) -> Loop[int]:
    """Like ``T.serial``, but the compiler repeats the body instead of emitting a loop.

    Example: ``T.unroll(4)``

    Raises:
        TileError: as ``T.serial``.
    """
    _refuse("unroll", annotations=annotations or None)
    return Loop("unroll", _bounds("unroll", start, stop, step))


def parallel(start: Whole, stop: Whole | None = None, *, annotations: Mapping[str, object] | None = None) -> Loop[int]:
    """Like ``T.serial``; the author states that the order of the iterations does not matter, which has no effect.

    Example: ``T.parallel(n)``

    Raises:
        TileError: as ``T.serial``.
    """
    _refuse("parallel", annotations=annotations or None)
    return Loop("parallel", _bounds("parallel", start, stop))


def vectorized(start: Whole, stop: Whole | None = None, *, annotations: Mapping[str, object] | None = None) -> Loop[int]:
    """Like ``T.serial``; the author states that the order of the iterations does not matter, which has no effect.

    ``T.Parallel`` is the loop that becomes vector operations.

    Example: ``T.vectorized(n)``

    Raises:
        TileError: as ``T.serial``.
    """
    _refuse("vectorized", annotations=annotations or None)
    return Loop("vectorized", _bounds("vectorized", start, stop))


@overload
def grid(first: Whole, /) -> Loop[int]: ...
@overload
def grid(first: Whole, second: Whole, /) -> Loop[tuple[int, int]]: ...
@overload
def grid(first: Whole, second: Whole, third: Whole, /) -> Loop[tuple[int, int, int]]: ...
@overload
def grid(first: Whole, second: Whole, third: Whole, fourth: Whole, /) -> Loop[tuple[int, int, int, int]]: ...
@overload
def grid(*extents: Whole) -> Loop[Any]: ...
def grid(*extents: Whole) -> Loop[Any]:
    """``for i, j in T.grid(m, n)``: nested ``T.serial`` loops, of which the last one is the innermost.

    Example: ``T.grid(4, 8)``

    Raises:
        TileError: T150, no extent, or an extent that is not an integer.
    """
    if not extents:
        raise TileError("T.grid takes at least one extent", code="T150", help="write T.grid(rows, columns)")
    for extent in extents:
        _bounds("grid", extent, None)
    return Loop("grid", extents)


def loop_break() -> None:
    """Leave the innermost loop; the same as ``break``.

    Example: ``T.loop_break()``

    Raises:
        TileError: T141, there is no loop, or its iterations have no order.
    """
    Trace.running("T.loop_break").jump("T.loop_break", leaves=True)


def Pipelined(start: Whole, stop: Whole | None = None, num_stages: int = 0, order: Sequence[int] | None = None,
              stage: Sequence[int] | None = None, sync: object = None, group: Sequence[Sequence[int]] | None = None,
              cross_interval: int | None = None) -> Loop[int]:
    """Like ``T.serial``, but the compiler may start the loads of later iterations before an iteration has finished.

    The results are those of the loop as it is written: a schedule that would change them is refused (T206).

    Example: ``T.Pipelined(T.ceildiv(K, 64), num_stages=2)``

    Args:
        start, stop: the bounds; with one argument the loop counts from 0 to it.
        num_stages: how many iterations are in flight at most; buffers that later iterations load get as many slots. 0: one.
        order: for each statement of the body, or for each group, its position in the body, from 0 on.
        stage: for each statement or group, by how many iterations it is delayed. A buffer that connects statements with
            different delays gets a slot for each of them. -1 in ``order`` and ``stage`` lets the compiler place a load.
        sync: not supported.
        group: lists of the numbers of statements that ``order`` and ``stage`` move together.
        cross_interval: accepted; each iteration has its own flags between the cores.

    Raises:
        TileError: T150, a negative number of stages, an interval below 1, an empty range such as ``T.Pipelined(8, 2)``, where
            the second argument looks like ``num_stages``, or a schedule that does not fit the body; T190, ``sync``.
    """
    if sync is not None:
        raise TileError("T.Pipelined: argument 'sync' is not supported", code="T190",
                        help="leave it out: the compiler synchronises the statements in any order and stage")
    if cross_interval is not None and (not _is_integer(cross_interval) or cross_interval < 1):
        raise TileError(f"T.Pipelined: cross_interval={cross_interval!r} is not a number of iterations", code="T150",
                        help="leave it out, or give 1 or more")
    if isinstance(num_stages, bool) or not isinstance(num_stages, int) or num_stages < 0:
        raise TileError(f"T.Pipelined: num_stages={num_stages!r} is not a number of stages", code="T150",
                        help="give 0 (no pipeline) or a depth such as 2")
    if _is_integer(start) and _is_integer(stop) and start >= stop and start != 0:
        raise TileError(f"T.Pipelined({start}, {stop}) never runs: the second argument is `stop`", code="T150",
                        help=f"write T.Pipelined({start}, num_stages={stop}) for a pipeline of {stop} stages")
    return Loop("Pipelined", _bounds("Pipelined", start, stop), num_stages, cross_interval=cross_interval or 1,
                schedule=schedule(order, stage, group))


@overload
def Parallel(first: Whole, /, *, coalesced_width: int | None = ...) -> Loop[int]: ...
@overload
def Parallel(first: Whole, second: Whole, /, *, coalesced_width: int | None = ...) -> Loop[tuple[int, int]]: ...
@overload
def Parallel(first: Whole, second: Whole, third: Whole, /, *, coalesced_width: int | None = ...
             ) -> Loop[tuple[int, int, int]]: ...
@overload
def Parallel(first: Whole, second: Whole, third: Whole, fourth: Whole, /, *, coalesced_width: int | None = ...
             ) -> Loop[tuple[int, int, int, int]]: ...
@overload
def Parallel(*extents: Whole, coalesced_width: int | None = ...) -> Loop[Any]: ...
def Parallel(*extents: Whole, coalesced_width: int | None = None) -> Loop[Any]:
    """``for i, j in T.Parallel(m, n)``: execute the body for each point ``(i, j)``, in no particular order.

    The body assigns elements, as in ``c[i, j] = a[i, j] + b[i, j]``; the compiler makes vector operations of it. A remark
    (T149) names points that read an element which another point stores. ``coalesced_width`` has no effect.

    Example: ``T.Parallel(8, 128)``

    Raises:
        TileError: T150, no extent, or an extent that is not a positive integer; T149, points store different values to one
            element; T141, a statement that cannot be executed for single points.
    """
    if not extents:
        raise TileError("T.Parallel takes at least one extent", code="T150", help="write T.Parallel(rows, columns)")
    for extent in extents:
        if not isinstance(extent, (Sym, TracedValue)) and (not _is_integer(extent) or extent <= 0):
            raise TileError(f"T.Parallel: extent {extent!r} is not a positive integer", code="T150",
                            help="T.ceildiv(size, step) counts the steps of a size")
    return Loop("Parallel", extents)


def Persistent(domain: int | Sequence[int], wave_size: int, index: Whole, group_size: int = 8) -> Loop[Any]:
    """``for x, y in T.Persistent([m, n], blocks, cid)``: loop over the tiles of an m x n domain that block ``cid`` computes.

    Block ``cid`` takes tiles ``cid``, ``cid + blocks``, ``cid + 2 * blocks``, ... Tiles are numbered in bands of ``group_size``
    along the last axis, where that divides it, else one by one.

    Example: ``T.Persistent([M // 128, N // 128], 24, cid)``

    Args:
        domain: the number of tiles along each axis.
        wave_size: the number of blocks.
        index: the block id.
        group_size: the width of a band.

    Raises:
        TileError: T150, a size is not a positive constant.
    """
    sizes = [*(domain if isinstance(domain, (list, tuple)) else [domain]), wave_size, group_size]
    for size in sizes:
        if not _is_integer(size) or size <= 0:
            raise TileError(f"T.Persistent: {size!r} is not a positive constant", code="T150",
                            help="loop over the waves with T.serial where sizes are known only at run time")
    return Loop("Persistent", tuple(int(size) for size in sizes), index=index)


def range_loop(*bounds: object) -> Loop[int]:
    """Python's ``range`` with bounds that are traced or symbolic."""
    if not 1 <= len(bounds) <= 3:
        raise TileError(f"range takes 1 to 3 bounds, not {len(bounds)}", code="T145",
                        help="write range(stop), range(start, stop) or range(start, stop, step)")
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    return Loop("range", _bounds("range", start, stop, bounds[2] if len(bounds) == 3 else 1))


def func_attr(attributes: Mapping[str, object]) -> None:
    """Accepted; attributes of the function have no effect.

    Example: ``T.func_attr({"enable_auto_sync": True})``
    """
    del attributes
