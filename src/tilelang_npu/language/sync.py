"""The functions of ``T`` for manual synchronisation: events and barriers inside a core, and flags between cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, overload

from xdsl.ir import Block, Region, SSAValue

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.errors import TileError
from tilelang_npu.language.elements import Whole
from tilelang_npu.language.launch import pipe_name
from tilelang_npu.language.operands import as_memory
from tilelang_npu.target.chip_data import Pipe
from tilelang_npu.traced.buffers import Tile
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import convert, extent
from tilelang_npu.traced.kinds import INT64

EVENTS = 8
"""The number of events between two pipes of a core: HIVM's EVENT_ID0 to EVENT_ID7."""
EVENT_NUMBERS = 16
"""The number of events between two pipes that a kernel can name; the pass number-events maps those in use to HIVM's events."""
FLAGS = 16
"""The number of flags between the cores of a block (docs/hardware.md#flags)."""
MODES = {0: "INTER_BLOCK_SYNCHRONIZATION", 1: "INTER_SUBBLOCK_SYNCHRONIZATION", 2: "INTRA_BLOCK_SYNCHRONIZATION"}
"""HIVM's name of each mode of a cross-core flag: 0, between all cores of a kind; 1, between the Vector cores of a block; 2,
between the Cube core and the Vector cores of a block.
"""


def barrier_all() -> None:
    """Let the core wait until all its pipes have finished the operations before this statement.

    Example: ``T.barrier_all()``
    """
    Builder.running("T.barrier_all").tile_op(hivm.PipeBarrierOp("ALL"), "T.barrier_all")


_LINES = {"SINGLE_CACHE_LINE": "single_cache_line", "ENTIRE_DATA_CACHE": "all_cache_lines"}
_CACHES = {"CACHELINE_ALL": "all", "CACHELINE_UB": "ub", "CACHELINE_OUT": "out", "CACHELINE_ATOMIC": "atomic"}


def datacachecleanandinvalid_experiment(dst: Tile, CacheLine: str, DcciDst: str) -> None:
    """Write back and invalidate the cache lines of a global tensor in the scalar unit's data cache.

    The simulated machine has no such cache: scalar accesses go to GM, and the operation changes nothing.

    Example: ``T.tile.datacachecleanandinvalid_experiment(C, "ENTIRE_DATA_CACHE", "CACHELINE_OUT")``

    Args:
        dst: the global tensor, or an element of it.
        CacheLine: ``"SINGLE_CACHE_LINE"`` or ``"ENTIRE_DATA_CACHE"``.
        DcciDst: ``"CACHELINE_ALL"``, ``"CACHELINE_UB"``, ``"CACHELINE_OUT"`` or ``"CACHELINE_ATOMIC"``.

    Raises:
        TileError: T110, ``dst`` is not in GM; T145, ``CacheLine`` or ``DcciDst`` is none of these names.
    """
    what = "T.tile.datacachecleanandinvalid_experiment"
    builder = Builder.running(what)
    memory = as_memory(what, "the tensor", dst)
    if memory.buffer.space != "gm":
        raise TileError(f"{what}: {memory.describe()} is on the chip", code="T110", help="the data cache holds data of GM only")
    for given, known in ((CacheLine, _LINES), (DcciDst, _CACHES)):
        if given not in known:
            raise TileError(f"{what}: {given!r} is not known", code="T145", help="write one of " + ", ".join(known))
    builder.tile_op(hivm.DCCIOp(_LINES[CacheLine], _CACHES[DcciDst], memory.ssa(builder)), what)


def pipe_barrier(pipe: str) -> None:
    """Let a pipe wait until it has finished its operations before this statement.

    The pipe is ``"S"``, ``"V"``, ``"M"``, ``"MTE1"``, ``"MTE2"``, ``"MTE3"``, ``"FIX"``, or ``"ALL"`` for all pipes of the
    core.

    Example: ``T.pipe_barrier("V")``

    Raises:
        TileError: T161, there is no such pipe.
    """
    builder = Builder.running("T.pipe_barrier")
    builder.tile_op(hivm.PipeBarrierOp(pipe_name(pipe, "T.pipe_barrier")), "T.pipe_barrier")


@overload
def set_flag(src: str, dst: str, eventId: Whole = ...) -> None: ...
@overload
def set_flag(other: str, event_id: Whole = ...) -> None: ...
def set_flag(*arguments: object, **keywords: object) -> None:
    """Set an event once a pipe has finished its operations before this statement.

    ``T.set_flag(src, dst, event)`` sets an event from the pipe ``src`` for the pipe ``dst`` (ascendc). Inside ``T.rs(pipe)``,
    ``T.set_flag(other, event)`` sets an event from ``pipe`` for ``other`` (npuir). The event is a number from 0 to 15; the
    default is 0.

    Example: ``T.set_flag("mte2", "v", 0)``

    Raises:
        TileError: T161, there is no such pipe or event, or only one pipe is named outside ``T.rs``.
    """
    _flag("T.set_flag", hivm.SetFlagOp, arguments, keywords, own_pipe_first=True)


@overload
def wait_flag(src: str, dst: str, eventId: Whole = ...) -> None: ...
@overload
def wait_flag(other: str, event_id: Whole = ...) -> None: ...
def wait_flag(*arguments: object, **keywords: object) -> None:
    """Let a pipe wait for an event before its operations after this statement; the wait clears the event.

    ``T.wait_flag(src, dst, event)`` lets ``dst`` wait for an event that ``src`` sets (ascendc). Inside ``T.rs(pipe)``,
    ``T.wait_flag(other, event)`` lets ``pipe`` wait for an event that ``other`` sets (npuir). The event is a number from 0 to
    15; the default is 0.

    Example: ``T.wait_flag("mte2", "v", 0)``

    Raises:
        TileError: T161, there is no such pipe or event, or only one pipe is named outside ``T.rs``.
    """
    _flag("T.wait_flag", hivm.WaitFlagOp, arguments, keywords, own_pipe_first=False)


def init_flag(fmap: Mapping[str, Mapping[str, Sequence[Whole]]]) -> None:
    """Set several events: ``{"MTE1": {"MTE2": [0, 1]}}`` sets the events 0 and 1 from pipe MTE1 for pipe MTE2 (ascendc).

    Example: ``T.init_flag({"MTE1": {"MTE2": [0, 1]}})``

    Args:
        fmap: for each pipe that sets, for each pipe that waits, the numbers of the events.

    Raises:
        TileError: T161, there is no such pipe or event.
    """
    _each(set_flag, fmap)


def clear_flag(fmap: Mapping[str, Mapping[str, Sequence[Whole]]]) -> None:
    """Wait for several events: ``{"MTE1": {"MTE2": [0, 1]}}`` lets pipe MTE2 wait for the events 0 and 1 from MTE1 (ascendc).

    Example: ``T.clear_flag({"MTE1": {"MTE2": [0, 1]}})``

    Args:
        fmap: for each pipe that sets, for each pipe that waits, the numbers of the events.

    Raises:
        TileError: T161, there is no such pipe or event.
    """
    _each(wait_flag, fmap)


def _each(flag: Callable[..., None], fmap: Mapping[str, Mapping[str, Sequence[Whole]]]) -> None:
    for source, targets in fmap.items():
        for target, events in targets.items():
            for event in events:
                flag(source, target, event)


_PIPE_WORDS, _EVENT_WORDS = ("src", "dst", "other"), ("eventId", "event_id")


def _flag(what: str, op: type[hivm.SetFlagOp] | type[hivm.WaitFlagOp], arguments: tuple[object, ...],
          keywords: Mapping[str, object], own_pipe_first: bool) -> None:
    builder = Builder.running(what)
    arguments = (*arguments, *(keywords[word] for word in (*_PIPE_WORDS, *_EVENT_WORDS) if word in keywords))
    names = [value for value in arguments if isinstance(value, str)]
    numbers = arguments[len(names):]
    unknown = keywords.keys() - {*_PIPE_WORDS, *_EVENT_WORDS}
    if unknown or len(names) not in (1, 2) or len(numbers) > 1 or tuple(names) != arguments[:len(names)]:
        raise TileError(f"{what} takes (src, dst, event), or (other, event) inside T.rs(pipe)", code="T161",
                        help="for example ('mte2', 'v', 0)")
    pipes = [pipe_name(name, what) for name in names]
    if len(pipes) == 1:
        if builder.pipe is None:
            raise TileError(f"{what}({names[0]!r}, ...) with one pipe is outside T.rs", code="T161",
                            help=f"put the statement into `with T.rs(pipe):`, or write {what}(src, dst, event)")
        own = pipe_name(builder.pipe, f"{what} inside T.rs")
        pipes = [own, *pipes] if own_pipe_first else [*pipes, own]
    if pipes[0] == pipes[1] or "ALL" in pipes:
        raise TileError(f"{what}: an event goes from one pipe to another, not {pipes[0]} to {pipes[1]}", code="T161",
                        help="T.pipe_barrier orders the work of one pipe")
    builder.tile_op(op(pipes[0], pipes[1], _event(builder, what, numbers[0] if numbers else 0)), what)


def _event(builder: Builder, what: str, value: object) -> int | SSAValue:
    found = extent(builder, value)
    if isinstance(found, int):
        if not 0 <= found < EVENT_NUMBERS:
            raise TileError(f"{what}: there is no event {found}; events are 0 to {EVENT_NUMBERS - 1}", code="T161",
                            help="reuse events, as in counter % 8")
        return found if found < EVENTS else builder.constant(found, INT64)
    return convert(builder, found, INT64).ssa(builder)


def set_cross_flag(pipe: str, flag: Whole, mode: int = 2) -> None:
    """Set a flag for other cores once a pipe has finished its operations before this statement (ascendc).

    Example: ``T.set_cross_flag("FIX", 0)``

    Args:
        pipe: the pipe that sets the flag after its operations.
        flag: the number of the flag, 0 to 15. A flag is a counter: each set adds one, and each wait subtracts one.
        mode: 2, the Cube core sets the flag for the Vector cores of its block, or all Vector cores of a block together set it
            for their Cube core; 1, the flag is between the Vector cores of a block; 0, it is between all cores of one kind.

    Raises:
        TileError: T161, there is no such pipe, flag or mode, or neither ``T.Scope`` nor the pipe determines the kind of core
            that executes the statement.
    """
    what = "T.set_cross_flag"
    builder, name = Builder.running(what), pipe_name(pipe, what)
    if mode not in MODES:
        raise TileError(f"{what}: there is no mode {mode!r}", code="T161", help="modes are 0, 1 and 2")
    builder.tile_op(hivm.SyncBlockSetOp(_core(builder, what, name), name, "S", _cross_flag(builder, what, flag),
                                        mode=MODES[mode]), what)


def wait_cross_flag(flag: Whole, pipe: str = "") -> None:
    """Let the core wait for a flag that another core sets, before its operations after this statement (ascendc).

    The name ``pipe`` is checked, and has no effect on the chips that are modelled.

    Example: ``T.wait_cross_flag(0)``

    Raises:
        TileError: T161, there is no such pipe or flag, or no ``T.Scope`` determines the kind of core that executes the
            statement.
    """
    what = "T.wait_cross_flag"
    builder = Builder.running(what)
    if pipe:
        pipe_name(pipe, what)
    builder.tile_op(hivm.SyncBlockWaitOp(_core(builder, what, ""), "S", "S", _cross_flag(builder, what, flag)), what)


def sync_block_set(id: Whole) -> None:  # noqa: A002  (the language's name)
    """Set a flag for the other kind of core in the block once the pipe of the enclosing ``T.rs(pipe)`` has finished its
    operations before this statement (npuir).

    Example: ``T.sync_block_set(0)``

    Raises:
        TileError: T161, there is no such flag, the statement is not inside ``T.rs``, or neither ``T.Scope`` nor the pipe
            determines the kind of core that executes the statement.
    """
    what = "T.sync_block_set"
    builder = Builder.running(what)
    pipe = _own_pipe(builder, what)
    builder.tile_op(hivm.SyncBlockSetOp(_core(builder, what, pipe), pipe, "S", _cross_flag(builder, what, id)), what)


def sync_block_wait(id: Whole) -> None:  # noqa: A002  (the language's name)
    """Let the pipe of the enclosing ``T.rs(pipe)`` wait for a flag that the other kind of core in the block sets (npuir).

    Example: ``T.sync_block_wait(0)``

    Raises:
        TileError: T161, there is no such flag, the statement is not inside ``T.rs``, or neither ``T.Scope`` nor the pipe
            determines the kind of core that executes the statement.
    """
    what = "T.sync_block_wait"
    builder = Builder.running(what)
    pipe = _own_pipe(builder, what)
    builder.tile_op(hivm.SyncBlockWaitOp(_core(builder, what, pipe), "S", pipe, _cross_flag(builder, what, id)), what)


def block_barrier(id: Whole) -> None:  # noqa: A002  (the language's name)
    """Let all Cube cores, or all Vector cores, of the launch wait for each other (npuir).

    The kind of core is that of the enclosing ``T.Scope``, or the only kind that has the pipe of the enclosing ``T.rs``.

    Example: ``T.block_barrier(0)``

    Args:
        id: the number of the flag, 0 to 15, that each of these cores sets and waits for.

    Raises:
        TileError: T161, there is no such flag, or neither ``T.Scope`` nor ``T.rs`` determines the kind of core.
    """
    _meeting("T.block_barrier", id, MODES[0])


def subblock_barrier(id: Whole) -> None:  # noqa: A002  (the language's name)
    """Let the Vector cores of each block wait for each other (npuir).

    Example: ``T.subblock_barrier(0)``

    Args:
        id: the number of the flag, 0 to 15, that each of these cores sets and waits for.

    Raises:
        TileError: T161, there is no such flag, or the statement is neither inside ``T.Scope`` nor inside ``T.rs`` with a pipe
            that only one kind of core has.
    """
    _meeting("T.subblock_barrier", id, MODES[1])


_CORES_OF_BARRIER: dict[str, tile.CoreScope | None] = {"AICOnly": "cube", "AIVOnly": "vector", "Mix": None}
"""The cores that wait for each other in each mode of ``T.sync_all``; None for all cores."""


def sync_all(mode: str | None = None) -> None:
    """Let cores of the launch wait until each of them has finished its operations before this statement.

    Without ``mode``, the cores of the enclosing ``T.Scope`` wait for each other; outside of ``T.Scope``, all cores do. A kernel
    without work for one kind of core has no cores of that kind to wait for. ``T.sync_grid`` is the name of TileLang for GPUs.

    Example: ``T.sync_all("AIVOnly")``

    Args:
        mode: ``"AICOnly"``, the Cube cores of all blocks wait for each other; ``"AIVOnly"``, the Vector cores do; ``"Mix"``,
            all cores do. Cores of the other kind pass ``"AICOnly"`` and ``"AIVOnly"`` without waiting. ``"Mix"`` inside
            ``T.Scope`` waits until the cores of the other kind are at a ``"Mix"`` of theirs.

    Raises:
        TileError: T145, there is no such mode; T161, the statement is in a ``T.Scope`` of cores that do not take part.
    """
    builder = Builder.running("T.sync_all")
    if mode is None:
        _barrier_of_cores(builder, builder.core)
        return
    if mode not in _CORES_OF_BARRIER:
        raise TileError(f"T.sync_all: there is no mode {mode!r}", code="T145", help="the modes are AICOnly, AIVOnly and Mix")
    cores = _CORES_OF_BARRIER[mode]
    if builder.core is None and cores is not None:
        block = Block()
        with builder.at(block):
            _barrier_of_cores(builder, cores)
        builder.emit(tile.OnCoreOp(cores, Region(block)))
        return
    if cores is not None and cores != builder.core:
        raise TileError(f'T.sync_all("{mode}"): no {builder.core} core takes part in this barrier', code="T161",
                        help=f"write T.sync_all(), at which the {builder.core} cores wait for each other, or move the statement"
                             " out of T.Scope")
    _barrier_of_cores(builder, cores)


def _barrier_of_cores(builder: Builder, cores: tile.CoreScope | None) -> None:
    builder.tile_op(hivm.PipeBarrierOp("ALL"), "T.sync_all")
    builder.tile_op(hivm.barrier_of_cores(cores), "T.sync_all")


def _meeting(what: str, flag: object, mode: str) -> None:
    builder = Builder.running(what)
    pipe = pipe_name(builder.pipe, f"{what} inside T.rs") if builder.pipe is not None else "S"
    core, number = _core(builder, what, pipe), _cross_flag(builder, what, flag)
    builder.tile_op(hivm.SyncBlockSetOp(core, pipe, "S", number, mode=mode), what)
    builder.tile_op(hivm.SyncBlockWaitOp(core, "S", pipe, number, mode=mode), what)


def _own_pipe(builder: Builder, what: str) -> Pipe | Literal["ALL"]:
    if builder.pipe is None:
        raise TileError(f"{what} is outside T.rs", code="T161", help="put the statement into `with T.rs(pipe):`")
    return pipe_name(builder.pipe, f"{what} inside T.rs")


_SCOPE_CORES: dict[tile.CoreScope, hivm.CoreType] = {"cube": "CUBE", "vector": "VECTOR"}
_PIPE_CORES: dict[str, hivm.CoreType] = {"V": "VECTOR", "M": "CUBE", "MTE1": "CUBE", "FIX": "CUBE"}


def _core(builder: Builder, what: str, pipe: Pipe | Literal["ALL", ""]) -> hivm.CoreType:
    """The core that executes the statement: the core of the enclosing ``T.Scope``, or the only core that has the pipe."""
    named = _SCOPE_CORES[builder.core] if builder.core is not None else None
    only = _PIPE_CORES.get(pipe)
    if named is not None and only is not None and named != only:
        raise TileError(f"{what}: the {builder.core} core has no pipe {pipe}", code="T161",
                        help="the pipes of the Cube core are S, M, MTE1, MTE2, MTE3, FIX, of the Vector core S, V, MTE2, MTE3")
    core = named or only
    if core is None:
        raise TileError(f"{what}: the kind of core that executes the statement is not determined", code="T161",
                        help="put the statement into `with T.Scope('C'):` or `with T.Scope('V'):`")
    return core


def _cross_flag(builder: Builder, what: str, value: object) -> int | SSAValue:
    found = extent(builder, value)
    if isinstance(found, int):
        if not 0 <= found < FLAGS:
            raise TileError(f"{what}: there is no flag {found}; flags are 0 to {FLAGS - 1}", code="T161",
                            help="use one flag in all iterations: a flag counts its sets, and each wait consumes one set")
        return found
    return convert(builder, found, INT64).ssa(builder)
