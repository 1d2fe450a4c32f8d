"""Launch, cores, pipes and loops: the objects that a kernel uses after ``with`` and ``for``.

These objects only describe a ``with`` block or a loop; the front end reads them and creates the region in the IR.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NoReturn, TypeGuard, TypeVar, overload

from tilelang_npu.errors import TileError
from tilelang_npu.language.gpu_arguments import note_gpu_arguments
from tilelang_npu.language.loop_schedule import Schedule, schedule
from tilelang_npu.target import chip_data
from tilelang_npu.target.chip_data import Pipe
from tilelang_npu.traced.active_trace import Trace, TracedValue
from tilelang_npu.traced.author import user_location
from tilelang_npu.traced.symbols import Sym

if TYPE_CHECKING:
    from tilelang_npu.dialects.tile import CoreScope
    from tilelang_npu.language.elements import Whole

V = TypeVar("V")
PIPES: dict[str, Pipe | Literal["ALL"]] = {**dict(zip(chip_data.PIPES, chip_data.PIPES, strict=True)), "ALL": "ALL"}
"""The names of pipes in a kernel."""


class Frame:
    """Base class of the objects in ``with`` statements of a kernel, such as ``T.Kernel``. The front end reads the object and
    never enters it as a context manager; entering it in Python is an error (T160).
    """

    def __enter__(self) -> Any:  # what `as` names in a kernel: block ids
        self._refuse()

    def __exit__(self, *_: object) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise TileError(f"`with T.{type(self).__name__}` must be in the source of a @T.prim_func or @T.macro", code="T160",
                        location=user_location(),
                        help="if the statement is in a helper function, put @T.macro above the function")


class Blocks(int):
    """The type, for type checkers, of the name after ``as`` in ``with T.Kernel(...) as``: one block id, which can also be
    unpacked to several block ids.
    """

    def __iter__(self) -> Iterator[int]:
        return iter((int(self),))


class Kernel(Frame):
    """The launch of a kernel: ``with T.Kernel(blocks, is_npu=True) as (cid, vid):`` executes its body once for each block.

    Example: ``T.Kernel(T.ceildiv(M, 128), is_npu=True)``

    Args:
        blocks: the number of blocks along each of 1 to 3 axes of the grid. Block ids are numbered with the first axis fastest.
        threads: with ``is_npu``, the number of Vector cores of a block, 1 or 2, between which the compiler divides the block's
            work. On a chip with more than two Vector cores per Cube core the number can be larger; ``vid`` in ``as (i, vid)``
            then has this number of values. On a chip with one Vector core per Cube core, 2 is the same as 1. Without
            ``is_npu``, it is the shape of a GPU's block, to which ``T.get_thread_binding`` refers; 128 if it is not given.
        is_npu: whether the kernel is written for an NPU. The index of the Vector core in its block (0 or 1) then follows the
            block ids: ``as (i, j, vid)``. Kernels that leave the cores to the compiler do not use the index: ``as (i, j, _)``.
        is_cpu, prelude, pipeline: arguments of TileLang for other machines; only values that have no effect are accepted.

    Raises:
        TileError: T150, a block count or a thread count is not a positive integer; T190, an argument that is not supported.
    """

    def __init__(self, *blocks: Whole, threads: int | Sequence[int] | None = None, is_cpu: bool = False,
                 prelude: str | None = None, is_npu: bool = False, pipeline: bool = False) -> None:
        for name, value in (("is_cpu", is_cpu), ("prelude", prelude), ("pipeline", pipeline)):
            if value:
                raise TileError(f"T.Kernel: {name}={value!r} is not supported yet", code="T190",
                                help=f"remove the argument {name}")
        if not 1 <= len(blocks) <= 3:
            raise TileError(f"T.Kernel takes 1 to 3 block counts, not {len(blocks)}", code="T150",
                            help="combine two axes: T.Kernel(a * b, ...), with the indices id // b and id % b" if blocks else
                            "give the number of blocks: T.Kernel(blocks, is_npu=True)")
        for axis, count in enumerate(blocks):
            # 0 is refused where the kernel is compiled; a call whose arrays have no elements interprets a kernel of 0 blocks
            if isinstance(count, (int, float)) and (isinstance(count, (bool, float)) or count < 0):
                raise TileError(f"T.Kernel: block count {count!r} of axis {axis} is not a positive integer", code="T150",
                                help="T.ceildiv(size, block) counts the blocks of a size")
        self.blocks = blocks
        self.threads = _threads(threads)
        self.is_npu = bool(is_npu)
        given = threads if isinstance(threads, (list, tuple)) else [128 if threads is None else threads]
        self.gpu_threads: tuple[int, ...] = () if is_npu else tuple(count for count in given if isinstance(count, int))

    def counted_cores(self, available: int) -> int:
        """Returns the number of values of the Vector core index that follows the block ids in ``as (i, vid)``.

        The number is ``threads`` if that is more than two and at most ``available``, else two.

        Args:
            available: the number of Vector cores per Cube core on the chip.
        """
        return self.threads if self.threads is not None and 2 < self.threads <= available else 2

    def __enter__(self) -> Blocks:
        self._refuse()


def _threads(threads: object) -> int | None:
    if threads is None:
        return None
    counts: list[object] = list(threads) if isinstance(threads, (list, tuple)) else [threads]
    known = [count for count in counts if isinstance(count, int) and not isinstance(count, bool) and count > 0]
    if not known or len(known) < len(counts):
        raise TileError(f"T.Kernel: threads={threads!r} is not a positive integer", code="T150",
                        help="threads must be 1 or 2, the number of Vector cores per block; or remove the argument")
    return math.prod(known)


class Scope(Frame):
    """Execute the statements in the ``with`` block on one kind of core.

    ``"C"`` and ``"Cube"`` name the Cube core, ``"V"`` and ``"Vector"`` the Vector cores.

    Example: ``T.Scope("C")``

    Raises:
        TileError: T150, the argument is none of these names.
    """

    CORES: ClassVar[dict[str, CoreScope]] = {"C": "cube", "Cube": "cube", "V": "vector", "Vector": "vector"}

    def __init__(self, name: str) -> None:
        if name not in self.CORES:
            raise TileError(f"T.Scope takes 'C'/'Cube' or 'V'/'Vector', not {name!r}", code="T150",
                            help="write T.Scope('C') or T.Scope('V')")
        self.core = self.CORES[name]


class SimdVF(Frame):
    """A vector function of Ascend 950, which computes on vector registers: ``with T.SimdVF():``.

    The body loads registers from buffers in UB, computes on them with the operations of ``T.vmi``, and stores them. It may have
    loops, branches and scalars. Instead it may consist of operations on tiles, which are then compiled as outside of it.

    Example: ``T.SimdVF(lanes=64)``

    Args:
        lanes: the number of lanes of the registers into which TileLang divides ``T.Parallel``; it has no effect here.
        latency: the number of cycles that the function takes, as measured; 0 lets the simulator compute it.

    Raises:
        TileError: T150, an argument is not a number; T190, the chip has no vector registers.
    """

    WHAT = "T.SimdVF"

    def __init__(self, lanes: int = 64, latency: int = 0) -> None:
        self.lanes = _count(self.WHAT, "lanes", lanes, 1)
        self.latency = _count(self.WHAT, "latency", latency, 0)


class SimtVF(Frame):
    """A vector function of Ascend 950 whose body TileLang runs with threads: ``with T.SimtVF(threads=128):``.

    Its operations on tiles and ``T.Parallel`` loops are compiled as outside of it. The index of a thread
    (``T.get_thread_binding``) is not supported in it.

    Example: ``T.SimtVF(threads=128)``

    Args:
        threads: the number of threads along each of at most three axes; it has no effect here.
        latency: as for ``T.SimdVF``; it has no effect here.

    Raises:
        TileError: T150, an argument is not a number; T190, the chip has no vector registers.
    """

    WHAT = "T.SimtVF"

    def __init__(self, threads: int | Sequence[int] = 128, latency: int = 0) -> None:
        given = list(threads) if isinstance(threads, (list, tuple)) else [threads]
        if not 1 <= len(given) <= 3:
            raise TileError(f"T.SimtVF: threads={threads!r} has {len(given)} axes", code="T150", help="give 1 to 3 axes")
        self.threads = tuple(_count(self.WHAT, "threads", count, 1) for count in given)
        self.latency = _count(self.WHAT, "latency", latency, 0)


def _count(what: str, name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise TileError(f"{what}: {name}={value!r} is not a number from {least} on", code="T150",
                        help=f"give {name} an integer from {least} on")
    return value


class If(Frame):
    """A branch, the same as ``if``. The body of ``with T.If(condition):`` must consist of ``with T.Then():`` and at most one
    ``with T.Else():``.

    Example: ``T.If(n > 0)``
    """

    def __init__(self, condition: object) -> None:
        self.condition = condition


class Then(Frame):
    """The statements that a ``T.If`` executes if its condition is true.

    Example: ``T.Then()``
    """


class Else(Frame):
    """The statements that a ``T.If`` executes if its condition is false.

    Example: ``T.Else()``
    """


class rs(Frame):
    """Set the pipe that sets or waits in the ``T.set_flag``, ``T.wait_flag`` and cross-core flags of the ``with`` block
    (npuir).

    Other operations in the block are not affected. The pipe's name is checked at the first flag in the block.

    Example: ``T.rs("PIPE_MTE2")``

    Raises:
        TileError: T161, the argument is not a string, or is empty.
    """

    def __init__(self, pipe: str) -> None:
        if not isinstance(pipe, str) or not pipe:
            raise TileError(f"T.rs: there is no pipe {pipe!r}", code="T161", help="pipes are " + ", ".join(PIPES))
        self.pipe = pipe


def pipe_name(spelling: object, what: str) -> Pipe | Literal["ALL"]:
    """Returns the canonical name of a pipe: ``"MTE2"`` for ``"mte2"`` and for ``"PIPE_MTE2"``.

    Args:
        spelling: the pipe as the kernel names it.
        what: the name of the call, for messages.

    Raises:
        TileError: T161, there is no such pipe.
    """
    name = str(spelling).upper().removeprefix("PIPE_") if isinstance(spelling, str) else ""
    if name not in PIPES:
        raise TileError(f"{what}: there is no pipe {spelling!r}", code="T161", help="pipes are " + ", ".join(PIPES))
    return PIPES[name]


@dataclass(frozen=True)
class Loop(Generic[V]):
    """The description of a loop, which a kernel uses after ``for ... in``.

    Attributes:
        kind: the name of the function in ``T`` that made the object.
        extents: ``(start, stop, step)``; for ``Parallel`` and ``grid`` the size of each axis; for ``Persistent`` the sizes of
            the domain, the number of blocks and the group size.
        num_stages: the number of pipeline stages that the author chose; 0 for no pipeline, None if the compiler chooses.
        index: the block id of a ``Persistent`` loop.
        cross_interval: the number of iterations that share a flag between the cores, as the author has given it.
        schedule: the author's schedule of the statements of a ``Pipelined`` loop; None without one.
    """

    kind: Literal["serial", "range", "unroll", "Pipelined", "Parallel", "Persistent", "grid", "parallel", "vectorized"]
    extents: tuple[object, ...]
    num_stages: int | None = None
    index: object = None
    cross_interval: int = 1
    schedule: Schedule | None = None

    def __iter__(self) -> Iterator[V]:
        raise TileError(f"T.{self.kind} can only be used after `for` in the source of a kernel", code="T141",
                        location=user_location(),
                        help="if the loop is in a helper function, put @T.macro above the function")


def _bounds(kind: str, start: object, stop: object, step: object = 1) -> tuple[object, object, object]:
    if stop is None:
        start, stop = 0, start
    for bound in (start, stop, step):
        if isinstance(bound, range):
            given = [bound.start, bound.stop, bound.step] if bound.step != 1 else [bound.start, bound.stop][not bound.start:]
            raise TileError(f"T.{kind} takes start, stop and step as separate arguments, not {bound!r}", code="T150",
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


def serial(start: Whole, stop: Whole | None = None, step: Whole = 1, *, annotations: Mapping[str, object] | None = None
           ) -> Loop[int]:
    """``for i in T.serial(stop)`` or ``T.serial(start, stop, step)``: execute the body for one value of ``i`` after another.

    ``annotations`` has no effect.

    Example: ``T.serial(0, n, 2)``

    Raises:
        TileError: T150, a bound is not an integer, or the step is not positive.
    """
    note_gpu_arguments("serial", annotations=annotations or None)
    return Loop("serial", _bounds("serial", start, stop, step))


def unroll(start: Whole, stop: Whole | None = None, step: Whole = 1, *, annotations: Mapping[str, object] | None = None,
           explicit: bool = False, unroll_factor: int | None = None) -> Loop[int]:
    """A loop like ``T.serial`` that the compiler unrolls: the body is repeated for each iteration instead of emitting a loop.

    The keyword arguments have no effect.

    Example: ``T.unroll(4)``

    Raises:
        TileError: as ``T.serial``.
    """
    note_gpu_arguments("unroll", annotations=annotations or None, explicit=explicit, unroll_factor=unroll_factor)
    return Loop("unroll", _bounds("unroll", start, stop, step))


def parallel(start: Whole, stop: Whole | None = None, *, annotations: Mapping[str, object] | None = None) -> Loop[int]:
    """A loop that is executed like ``T.serial``. The name states that iterations are independent, which has no effect.

    Example: ``T.parallel(n)``

    Raises:
        TileError: as ``T.serial``.
    """
    note_gpu_arguments("parallel", annotations=annotations or None)
    return Loop("parallel", _bounds("parallel", start, stop))


def vectorized(start: Whole, stop: Whole | None = None, *, annotations: Mapping[str, object] | None = None) -> Loop[int]:
    """A loop that is executed like ``T.serial``. The name states that iterations are independent, which has no effect.

    Use ``T.Parallel`` for a loop that the compiler turns into vector operations.

    Example: ``T.vectorized(n)``

    Raises:
        TileError: as ``T.serial``.
    """
    note_gpu_arguments("vectorized", annotations=annotations or None)
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
        TileError: T150, there is no extent, or an extent is not an integer.
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
        TileError: T141, the statement is not in a loop, or the loop is one whose iterations have no order, such as
            ``T.Parallel``.
    """
    Trace.running("T.loop_break").jump("T.loop_break", leaves=True)


def Pipelined(start: Whole, stop: Whole | None = None, num_stages: int | None = None, order: Sequence[int] | None = None,
              stage: Sequence[int] | None = None, sync: object = None, group: Sequence[Sequence[int]] | None = None,
              cross_interval: int | None = None, annotations: Mapping[str, object] | None = None) -> Loop[int]:
    """A loop like ``T.serial`` that is software-pipelined: loads of later iterations can start before an iteration has
    finished.

    The results are those of the loop as it is written. A schedule that would change the results raises T206.

    Example: ``T.Pipelined(T.ceildiv(K, 64), num_stages=2)``

    Args:
        start, stop: the bounds; with one argument, the loop counts from 0 to this argument.
        num_stages: the largest number of iterations that overlap. A buffer that the loop loads gets this number of slots, or
            as many as there is room for. 0 is the same as 1: buffers have one slot, and a load waits until the last use of the
            tile before. None lets the compiler choose, as for ``T.serial``.
        order: for each statement of the body, or for each group, its position in the pipelined body, from 0 on.
        stage: for each statement of the body, or for each group, the number of iterations by which it is delayed. A buffer
            between statements with different delays gets one slot for each delay. For a load, -1 in both ``order`` and
            ``stage`` lets the compiler choose.
        sync: not supported.
        group: a list of groups, each a list of the numbers of statements that ``order`` and ``stage`` treat as one.
        cross_interval: accepted, and has no effect: each iteration has its own flags between the cores.
        annotations: have no effect.

    Raises:
        TileError: T150, ``num_stages`` is negative, ``cross_interval`` is below 1, the range is empty as in ``T.Pipelined(8,
            2)`` (the second argument is ``stop``, not ``num_stages``), or the schedule does not fit the body; T190, ``sync`` is
            given.
    """
    note_gpu_arguments("Pipelined", annotations=annotations or None)
    if sync is not None:
        raise TileError("T.Pipelined: argument 'sync' is not supported", code="T190",
                        help="remove sync: the compiler inserts the waits for any order and stage")
    if cross_interval is not None and (not _is_integer(cross_interval) or cross_interval < 1):
        raise TileError(f"T.Pipelined: cross_interval={cross_interval!r} is not a number of iterations", code="T150",
                        help="remove cross_interval, or pass an integer from 1 on")
    if num_stages is not None and (isinstance(num_stages, bool) or not isinstance(num_stages, int) or num_stages < 0):
        raise TileError(f"T.Pipelined: num_stages={num_stages!r} is not a number of stages", code="T150",
                        help="give 0 (no pipeline) or a depth such as 2")
    if _is_integer(start) and _is_integer(stop) and start >= stop and start != 0:
        raise TileError(f"T.Pipelined({start}, {stop}) never runs: the second argument is `stop`", code="T150",
                        help=f"write T.Pipelined({start}, num_stages={stop}) for a pipeline of {stop} stages")
    return Loop("Pipelined", _bounds("Pipelined", start, stop), num_stages, cross_interval=cross_interval or 1,
                schedule=schedule(order, stage, group))


@overload
def Parallel(first: Whole, /, *, coalesced_width: int | None = ..., loop_layout: object = ...,
             annotations: Mapping[str, object] | None = ..., prefer_async: bool | None = ...) -> Loop[int]: ...
@overload
def Parallel(first: Whole, second: Whole, /, *, coalesced_width: int | None = ..., loop_layout: object = ...,
             annotations: Mapping[str, object] | None = ..., prefer_async: bool | None = ...) -> Loop[tuple[int, int]]: ...
@overload
def Parallel(first: Whole, second: Whole, third: Whole, /, *, coalesced_width: int | None = ..., loop_layout: object = ...,
             annotations: Mapping[str, object] | None = ..., prefer_async: bool | None = ...) -> Loop[tuple[int, int, int]]: ...
@overload
def Parallel(first: Whole, second: Whole, third: Whole, fourth: Whole, /, *,
             coalesced_width: int | None = ..., loop_layout: object = ...,
             annotations: Mapping[str, object] | None = ..., prefer_async: bool | None = ...
             ) -> Loop[tuple[int, int, int, int]]: ...
@overload
def Parallel(*extents: Whole, coalesced_width: int | None = ..., loop_layout: object = ...,
             annotations: Mapping[str, object] | None = ..., prefer_async: bool | None = ...) -> Loop[Any]: ...
def Parallel(*extents: Whole, coalesced_width: int | None = None, loop_layout: object = None,
             annotations: Mapping[str, object] | None = None, prefer_async: bool | None = None) -> Loop[Any]:
    """``for i, j in T.Parallel(m, n)``: execute the body for each index pair ``(i, j)``, in no particular order.

    The body assigns elements, as in ``c[i, j] = a[i, j] + b[i, j]``; the compiler turns the loop into vector operations. A
    warning (T149) is issued if an iteration reads an element that another iteration stores. Past the end of a
    global tensor, as in its last, partial tile, an element reads as 0 and is not written; a negative index is
    an error (T502). The keyword arguments have no effect.

    Example: ``T.Parallel(8, 128)``

    Raises:
        TileError: T150, there is no extent, or an extent is not a positive integer; T149, iterations store different values to
            one element; T141, the body has a statement that cannot be executed for single elements.
    """
    note_gpu_arguments("Parallel", loop_layout=loop_layout, annotations=annotations or None, prefer_async=prefer_async)
    if not extents:
        raise TileError("T.Parallel takes at least one extent", code="T150", help="write T.Parallel(rows, columns)")
    for extent in extents:
        if not isinstance(extent, (Sym, TracedValue)) and (not _is_integer(extent) or extent <= 0):
            raise TileError(f"T.Parallel: extent {extent!r} is not a positive integer", code="T150",
                            help="give each axis a positive integer, such as a size of the tile, or T.ceildiv(size, step) for "
                                 "the number of steps")
    return Loop("Parallel", extents)


_BAND = 8
"""The width of a band of ``T.Persistent`` in tiles, by default, as in TileLang."""


def Persistent(domain: Whole | Sequence[Whole], wave_size: int, index: Whole, group_size: int | None = None) -> Loop[Any]:
    """``for x, y in T.Persistent([m, n], blocks, cid)``: loop over the tiles of an m x n domain that block ``cid`` computes.

    Block ``cid`` computes the tiles ``cid``, ``cid + blocks``, ``cid + 2 * blocks``, ... The tiles are numbered in bands that
    are ``group_size`` tiles wide along the last axis. If the domain is narrower, or ``group_size`` is not given and 8 does not
    divide the number of tiles along the last axis, they are numbered in row-major order.

    Example: ``T.Persistent([M // 128, N // 128], 24, cid)``

    Args:
        domain: the number of tiles along each axis. The numbers may be known only at run time, but the last of several.
        wave_size: the number of blocks of the launch.
        index: the block id, from 0 to ``wave_size - 1``.
        group_size: the width of a band, in tiles. 8 by default.

    Raises:
        TileError: T150, a size is not positive, or not a constant where it must be one, ``index`` is a constant outside of its
            range, or the given ``group_size`` does not divide the number of tiles along the last axis.
    """
    tiles: list[Any] = list(domain) if isinstance(domain, (list, tuple)) else [domain]
    width = _BAND if group_size is None else group_size
    named = [*(("domain extents", size) for size in tiles), ("wave_size", wave_size), ("group_size", width)]
    for position, (name, size) in enumerate(named):
        if position < max(1, len(tiles) - 1) and isinstance(size, (Sym, TracedValue)):
            continue
        if not _is_integer(size):
            raise TileError(f"T.Persistent: {name} must be constant, not {size!r}", code="T150",
                            help="the last of several sizes, the wave and the group must be constants: exchange the axes, or"
                                 " loop over the waves with T.serial")
        if size <= 0:
            raise TileError(f"T.Persistent: {name} must be positive, not {size}", code="T150",
                            help="give the number of tiles, of blocks of the launch, or of tiles of a band")
    if _is_integer(index) and not 0 <= index < wave_size:
        raise TileError(f"T.Persistent: index must satisfy 0 <= index < wave_size: it is {index}, and wave_size is {wave_size}",
                        code="T150", help="pass the block id of T.Kernel, and its number of blocks as wave_size")
    last = tiles[-1]
    if group_size is not None and len(tiles) > 1 and last % min(width, last):
        raise TileError(f"T.Persistent: the last domain extent must be divisible by group_size: {last} tiles, bands of {width}",
                        code="T150", help="choose a divisor, or leave group_size out")
    return Loop("Persistent", (*(int(size) if _is_integer(size) else size for size in tiles), int(wave_size), int(width)),
                index=index)


def range_loop(*bounds: object) -> Loop[int]:
    """Returns the loop of Python's ``range`` in a kernel, whose bounds can be values of the kernel or symbolic dimensions.

    Raises:
        TileError: T145, the number of bounds is wrong; T150, a bound is not an integer, or the step is not positive.
    """
    if not 1 <= len(bounds) <= 3:
        raise TileError(f"range takes 1 to 3 bounds, not {len(bounds)}", code="T145",
                        help="write range(stop), range(start, stop) or range(start, stop, step)")
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    return Loop("range", _bounds("range", start, stop, bounds[2] if len(bounds) == 3 else 1))


def func_attr(attributes: Mapping[str, object]) -> None:
    """Accept attributes of the function, which have no effect.

    Example: ``T.func_attr({"enable_auto_sync": True})``
    """
    del attributes
