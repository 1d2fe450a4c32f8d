"""Launch, cores, pipes and loops: what stands behind ``with`` and ``for`` in a kernel.

These are descriptions; the front end reads them and opens the region. They do nothing of their own on the host.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeGuard, TypeVar, overload

from tilelang_npu.errors import TileError
from tilelang_npu.language.schedules import Schedule, schedule
from tilelang_npu.traced.author import user_location
from tilelang_npu.traced.running import Trace, TracedValue
from tilelang_npu.traced.symbols import Sym

if TYPE_CHECKING:
    from tilelang_npu.language.elements import Whole

V = TypeVar("V")
PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL")


class Frame:
    """A ``with`` frame of the language. Outside the front end it cannot be entered."""

    def __enter__(self) -> Any:  # what `as` names in a kernel: block ids
        self._refuse()

    def __exit__(self, *_: object) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise TileError(f"`with T.{type(self).__name__}` must stand in the source of a @T.prim_func or @T.macro", code="T160",
                        location=user_location(),
                        help="a plain Python helper runs natively; make it a @T.macro")


class Blocks(int):
    """What ``as`` names, to a type checker: ``as block`` is a number, ``as (block, sub_block)`` are several."""

    def __iter__(self) -> Iterator[int]:
        return iter((int(self),))


class Kernel(Frame):
    """The launch: ``with T.Kernel(blocks, is_npu=True) as (cid, vid):``.

    Example: ``T.Kernel(T.ceildiv(M, 128), is_npu=True)``

    Args:
        blocks: number of blocks per grid axis, 1 to 3 axes; the first axis runs fastest.
        threads: with ``is_npu``, 1 or 2: the number of Vector cores per block, whose work the compiler spreads. In GPU
            form any positive number; it has no effect here.
        is_npu: the NPU form, which also yields the sub-block index, last: ``as (i, j, vid)`` of two axes. In Developer mode
            nothing needs it: ``as (i, j, _)``.
        is_cpu, prelude, pipeline: accepted where they have no effect.

    Raises:
        TileError: T150, a block count or a thread count is not positive or not an integer.
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
    """The body runs on one core only: ``"C"`` or ``"Cube"``, ``"V"`` or ``"Vector"``.

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
    """``with T.If(condition):`` holds ``with T.Then():`` and, where there is one, ``with T.Else():``; the same as ``if``.

    Example: ``T.If(n > 0)``
    """

    def __init__(self, condition: object) -> None:
        self.condition = condition


class Then(Frame):
    """What a ``T.If`` runs where its condition holds.

    Example: ``T.Then()``
    """


class Else(Frame):
    """What a ``T.If`` runs where its condition does not hold.

    Example: ``T.Else()``
    """


class rs(Frame):
    """The pipe that ``T.set_flag``, ``T.wait_flag`` and the flags between cores in the body belong to (npuir dialect).

    It says nothing of other operations, so that any word may stand there where the body has no flag; a flag asks for a pipe.

    Example: ``T.rs("PIPE_MTE2")``

    Raises:
        TileError: T161, not a word.
    """

    def __init__(self, pipe: str) -> None:
        if not isinstance(pipe, str) or not pipe:
            raise TileError(f"T.rs: there is no pipe {pipe!r}", code="T161", help="pipes are " + ", ".join(PIPES))
        self.pipe = pipe


def pipe_name(spelling: object, what: str) -> str:
    """``"mte2"``, ``"MTE2"`` and ``"PIPE_MTE2"`` as ``"MTE2"``.

    Raises:
        TileError: T161, no such pipe.
    """
    name = str(spelling).upper().removeprefix("PIPE_") if isinstance(spelling, str) else ""
    if name not in PIPES:
        raise TileError(f"{what}: there is no pipe {spelling!r}", code="T161", help="pipes are " + ", ".join(PIPES))
    return name


@dataclass(frozen=True)
class Loop(Generic[V]):
    """What stands behind ``for``.

    Attributes:
        kind: the language function's name.
        extents: ``(start, stop, step)`` of one axis, or the extents of the axes of ``Parallel`` and ``grid``.
        num_stages: pipeline depth that was asked for; 0 for none.
        index: of ``Persistent`` the number of the block; its extents are the domain, the wave and the group.
        cross_interval: iterations that were to share a flag between the cores.
        schedule: of the statements, by the author.
    """

    kind: Literal["serial", "range", "unroll", "Pipelined", "Parallel", "Persistent", "grid", "parallel", "vectorized"]
    extents: tuple[object, ...]
    num_stages: int = 0
    index: object = None
    cross_interval: int = 1
    schedule: Schedule | None = None

    def __iter__(self) -> Iterator[V]:
        raise TileError(f"T.{self.kind} can only stand behind `for` in the source of a kernel", code="T141",
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


def _nothing_of(kind: str, **arguments: object) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise TileError(f"T.{kind}: argument {name!r} is not supported yet", code="T190", help="leave it out")


def serial(start: Whole, stop: Whole | None = None, step: Whole = 1, *, annotations: Mapping[str, object] | None = None
           ) -> Loop[int]:
    """``for i in T.serial(stop)`` or ``T.serial(start, stop)``: iterations one after another.

    Example: ``T.serial(0, n, 2)``
    """
    _nothing_of("serial", annotations=annotations or None)
    return Loop("serial", _bounds("serial", start, stop, step))


def unroll(start: Whole, stop: Whole | None = None, step: Whole = 1, *, annotations: Mapping[str, object] | None = None
           ) -> Loop[int]:
    """Like ``serial``, and the compiler repeats the body instead of looping.

    Example: ``T.unroll(4)``
    """
    _nothing_of("unroll", annotations=annotations or None)
    return Loop("unroll", _bounds("unroll", start, stop, step))


def parallel(start: Whole, stop: Whole | None = None, *, annotations: Mapping[str, object] | None = None) -> Loop[int]:
    """Like ``serial``: the author says that the order does not matter.

    Example: ``T.parallel(n)``
    """
    _nothing_of("parallel", annotations=annotations or None)
    return Loop("parallel", _bounds("parallel", start, stop))


def vectorized(start: Whole, stop: Whole | None = None, *, annotations: Mapping[str, object] | None = None) -> Loop[int]:
    """Like ``serial``: the author says that the order does not matter. Vector operations come of ``T.Parallel``.

    Example: ``T.vectorized(n)``
    """
    _nothing_of("vectorized", annotations=annotations or None)
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
    """``for i, j in T.grid(m, n)``: one ``serial`` loop inside another, the last axis runs fastest.

    Example: ``T.grid(4, 8)``

    Raises:
        TileError: T150, no extent, or one that is not an integer.
    """
    if not extents:
        raise TileError("T.grid takes at least one extent", code="T150", help="write T.grid(rows, columns)")
    for extent in extents:
        _bounds("grid", extent, None)
    return Loop("grid", extents)


def loop_break() -> None:
    """Leave the innermost loop, as ``break`` does.

    Example: ``T.loop_break()``

    Raises:
        TileError: T141, there is no loop, or one whose iterations have no order.
    """
    Trace.running("T.loop_break").jump("T.loop_break", leaves=True)


def Pipelined(start: Whole, stop: Whole | None = None, num_stages: int = 0, order: Sequence[int] | None = None,
              stage: Sequence[int] | None = None, sync: object = None, group: Sequence[Sequence[int]] | None = None,
              cross_interval: int | None = None) -> Loop[int]:
    """Like ``serial``, and loads of later iterations may overlap the work of earlier ones, ``num_stages`` deep.

    With ``stage`` each statement of the body works so many iterations behind, and with ``order`` it stands at that place of
    the body; with ``group`` these are of groups of statements, by their numbers from 0 on. What a statement hands to one that
    is further behind gets slots. -1 in both is a load whose place the compiler chooses. The values are those of the loop as
    written: a schedule that would change them is refused (T206).

    Each iteration has flags of its own between the cores, also where ``cross_interval`` asks for fewer; ``explain()`` tells.

    Example: ``T.Pipelined(T.ceildiv(K, 64), num_stages=2)``

    Raises:
        TileError: T150, a negative depth, an interval below 1, or an empty range that looks like a depth in second place;
            or a schedule that is not one of the body's statements; T190, ``sync``.
    """
    if sync is not None:
        raise TileError("T.Pipelined: argument 'sync' is not supported", code="T190",
                        help="leave it out: the compiler sets what orders the statements, wherever order and stage put them")
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
    """``for i, j in T.Parallel(m, n)``: the body once for each point, in no order: where a point reads an element that another
    one stores, a warning (T149) says so. ``coalesced_width`` has no effect.

    The body assigns elements: ``c[i, j] = a[i, j] + b[i, j]``.

    Example: ``T.Parallel(8, 128)``

    Raises:
        TileError: T150, no extent, or one that is not a positive integer.
    """
    if not extents:
        raise TileError("T.Parallel takes at least one extent", code="T150", help="write T.Parallel(rows, columns)")
    for extent in extents:
        if not isinstance(extent, (Sym, TracedValue)) and (not _is_integer(extent) or extent <= 0):
            raise TileError(f"T.Parallel: extent {extent!r} is not a positive integer", code="T150",
                            help="T.ceildiv(size, step) counts the steps of a size")
    return Loop("Parallel", extents)


def Persistent(domain: int | Sequence[int], wave_size: int, index: Whole, group_size: int = 8) -> Loop[Any]:
    """``for x, y in T.Persistent([m, n], blocks, cid)``: the tiles of a domain that block ``cid`` of ``blocks`` takes, wave by
    wave; tiles follow each other in bands of ``group_size`` of the last axis, where that divides it.

    Example: ``T.Persistent([M // 128, N // 128], 24, cid)``

    Raises:
        TileError: T150, an extent that is not a positive constant.
    """
    sizes = [*(domain if isinstance(domain, (list, tuple)) else [domain]), wave_size, group_size]
    for size in sizes:
        if not _is_integer(size) or size <= 0:
            raise TileError(f"T.Persistent: {size!r} is not a positive constant", code="T150",
                            help="loop over the waves with T.serial where sizes are known only at run time")
    return Loop("Persistent", tuple(int(size) for size in sizes), index=index)


def range_loop(*bounds: object) -> Loop[int]:
    """Python's ``range`` where a bound is traced or symbolic."""
    if not 1 <= len(bounds) <= 3:
        raise TileError(f"range takes 1 to 3 bounds, not {len(bounds)}", code="T145",
                        help="write range(stop), range(start, stop) or range(start, stop, step)")
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    return Loop("range", _bounds("range", start, stop, bounds[2] if len(bounds) == 3 else 1))


def func_attr(attributes: Mapping[str, object]) -> None:
    """Accepted: nothing here depends on attributes that a kernel's author gives the function.

    Example: ``T.func_attr({"enable_auto_sync": True})``
    """
    del attributes
