"""Flags and barriers inside a core, as the author writes them."""

from __future__ import annotations

from typing import Any

from tilelang_npu.dialects import hivm
from tilelang_npu.errors import TileError
from tilelang_npu.frontend.buffers import extent
from tilelang_npu.frontend.builder import Builder
from tilelang_npu.frontend.conversions import convert
from tilelang_npu.frontend.scalars import INT64
from tilelang_npu.language import tracing
from tilelang_npu.language.launch import pipe_name

EVENTS = 8
"""Events between two pipes of a core (AscendC; HIVM's EVENT_ID0 to EVENT_ID7)."""


def barrier_all() -> None:
    """Wait until every pipe of the core has done its earlier work."""
    tracing.builder("T.barrier_all").tile_op(hivm.PipeBarrierOp("PIPE_ALL"), "T.barrier_all")


def pipe_barrier(pipe: str) -> None:
    """Wait until one pipe has done its earlier work.

    Raises:
        TileError: T161, no such pipe.
    """
    builder = tracing.builder("T.pipe_barrier")
    builder.tile_op(hivm.PipeBarrierOp(f"PIPE_{pipe_name(pipe, 'T.pipe_barrier')}"), "T.pipe_barrier")


def set_flag(*arguments: Any, event_id: Any = None) -> None:
    """Raise an event once a pipe's earlier work is done.

    ``T.set_flag(src, dst, event)`` from pipe to pipe (ascendc), or ``T.set_flag(other, event)`` inside ``T.rs(pipe)`` from that
    pipe to the other (npuir); the event is 0 without one.

    Raises:
        TileError: T161, no such pipe, an event that is not 0 to 7, or no ``T.rs`` around the short form.
    """
    _flag("T.set_flag", hivm.SetFlagOp, arguments, event_id, own_pipe_first=True)


def wait_flag(*arguments: Any, event_id: Any = None) -> None:
    """Hold a pipe until an event was raised: ``T.wait_flag(src, dst, event)``, or ``T.wait_flag(other, event)`` inside
    ``T.rs(pipe)``, which waits there for the other pipe."""
    _flag("T.wait_flag", hivm.WaitFlagOp, arguments, event_id, own_pipe_first=False)


def _flag(what: str, op: type[hivm.SetFlagOp] | type[hivm.WaitFlagOp], arguments: tuple[Any, ...], event_id: Any,
          own_pipe_first: bool) -> None:
    builder = tracing.builder(what)
    names = [value for value in arguments if isinstance(value, str)]
    numbers = [*arguments[len(names):], *([event_id] if event_id is not None else [])]
    if len(names) not in (1, 2) or len(numbers) > 1 or tuple(names) != arguments[:len(names)]:
        raise TileError(f"{what} takes (src, dst, event), or (other, event) inside T.rs(pipe)", code="T161",
                        help="for example ('mte2', 'v', 0)")
    pipes = [pipe_name(name, what) for name in names]
    if len(pipes) == 1:
        if builder.pipe is None:
            raise TileError(f"{what}({names[0]!r}, ...) with one pipe stands outside T.rs", code="T161",
                            help=f"put it into `with T.rs(pipe):`, or write {what}(src, dst, event)")
        pipes = [builder.pipe, *pipes] if own_pipe_first else [*pipes, builder.pipe]
    if pipes[0] == pipes[1] or "ALL" in pipes:
        raise TileError(f"{what}: an event goes from one pipe to another, not {pipes[0]} to {pipes[1]}", code="T161",
                        help="T.pipe_barrier orders the work of one pipe")
    builder.tile_op(op(f"PIPE_{pipes[0]}", f"PIPE_{pipes[1]}", _event(builder, what, numbers[0] if numbers else 0)), what)


def _event(builder: Builder, what: str, value: Any) -> Any:
    found = extent(builder, value)
    if isinstance(found, int):
        if not 0 <= found < EVENTS:
            raise TileError(f"{what}: there is no event {found}; events are 0 to {EVENTS - 1}", code="T161",
                            help="use the events in turn: % 8 of a counter")
        return found
    return convert(builder, found, INT64).ssa(builder)
