"""Events, flags and barriers; the order of tiles; the output of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang_npu.interpreter.host_buffers import ScalarVariable, TileRef, integer, memory_of
from tilelang_npu.interpreter.operation_table import tiles
from tilelang_npu.interpreter.running_core import Core, current
from tilelang_npu.interpreter.typed_scalars import binary, is_literal, scalar


@tiles("barrier_all", "pipe_barrier", "set_flag", "wait_flag", "init_flag", "clear_flag",
       "tile.datacachecleanandinvalid_experiment")
def order_of_pipes(*_: Any, **__: Any) -> None:
    """Orders the pipes of one core; the interpreter executes operations one after another, so nothing is done."""


def _flag(flag: Any, pipe: str, *, mode: int | None = None, waits: bool = False) -> None:
    """Sets a flag with a mode, or waits for it, if this core executes the statement.

    That is the core of the ``T.Scope``, or the only core that has the pipe.
    """
    core = current()
    name = str(pipe).upper().removeprefix("PIPE_")
    kind = core.scope or {"V": "vector", "M": "cube", "MTE1": "cube", "FIX": "cube"}.get(name)
    if core.kind == "all" or (kind is not None and not core.executes(kind)):
        return
    schedule, launch = core.launch.schedule, core.launch
    if mode is not None:
        schedule.raise_flag(core, integer(flag), mode)
    if waits:
        schedule.wait_for_flag(core, integer(flag), launch.blocks * (launch.vectors if core.kind == "vector" else 1))


@tiles("set_cross_flag")
def set_cross_flag(pipe: Any, flag: Any, mode: int = 2) -> None:
    """Sets a flag for the cores of a mode."""
    _flag(flag, pipe, mode=mode)


@tiles("wait_cross_flag")
def wait_cross_flag(flag: Any, pipe: Any = "") -> None:
    """Waits until a flag is set, and consumes it."""
    _flag(flag, pipe, waits=True)


def _enter_flag(name: str, *, mode: int | None, waits: bool) -> None:
    """Enters an operation on a flag that takes the pipe from the enclosing ``T.rs``."""
    def call(id: Any) -> None:  # noqa: A002  (the language's name)
        _flag(id, current().pipes[-1] if current().pipes else "", mode=mode, waits=waits)

    tiles(name)(call)


_enter_flag("sync_block_set", mode=2, waits=False)
_enter_flag("sync_block_wait", mode=None, waits=True)
_enter_flag("block_barrier", mode=0, waits=True)
_enter_flag("subblock_barrier", mode=1, waits=True)


@tiles("sync_all")
def sync_all() -> None:
    """Lets all cores of the launch wait for each other; inside ``T.Scope`` the cores of that kind."""
    core = current()
    if core.kind == "all" or core.scope not in (None, core.kind):
        return
    launch, schedule = core.launch, core.launch.schedule
    count = launch.blocks * {"cube": 1, "vector": launch.vectors, None: launch.vectors + 1}[core.scope]
    own = ("sync_all", core.scope, core.block, core.kind, core.vector)
    schedule.consumed[own] += 1
    meeting = ("sync_all", core.scope, schedule.consumed[own])
    schedule.raised[meeting] += 1
    schedule.wait(core, lambda: schedule.raised[meeting] >= count, "T.sync_all")


@tiles("use_swizzle")
def use_swizzle(cid: Any = None, m: Any = None, n: Any = None, k: object = None, block_m: Any = None, block_n: Any = None,
                off: int = 1, dir: int = 0, in_loop: bool = False, **panels: Any) -> Any:  # noqa: A002  (the language's name)
    """The tile that a block computes: in bands of ``off`` rows (columns with ``dir`` 1), every second band backwards.

    The form for GPUs orders the blocks, which has no effect on values.
    """
    if m is None or isinstance(m, str) or panels:
        return None
    rows, columns = m // block_m, n // block_n
    along, across = (rows, columns) if dir == 0 else (columns, rows)
    if int(cid) >= rows * columns:
        return cid
    band, inside = divmod(int(cid), off * across)
    width = min(off, along - band * off)
    first, second = band * off + inside % width, inside // width
    second = across - 1 - second if band % 2 else second
    row, column = (first, second) if dir == 0 else (second, first)
    return binary("add", binary("mul", cid, 0), row * columns + column)


# --- output --------------------------------------------------------------------------------------------------------------


def _prints(core: Core) -> bool:
    return core.kind in ("all", core.scope or "vector")


@tiles("print", "npuir_print")
def print_(obj: Any, msg: str = "", hex: bool = False) -> None:  # noqa: A002  (the language's name)
    """Prints a tile or a number."""
    if _prints(current()):
        print(msg, obj.view() if isinstance(obj, TileRef) and not isinstance(obj, ScalarVariable) else obj)  # noqa: T201  (what the kernel asks for)


@tiles("printf")
def printf(format_str: str, *args: Any) -> None:
    """Prints a text with numbers in it."""
    if _prints(current()):
        values = tuple(value if isinstance(value, str) or is_literal(value) else scalar(value).value.item() for value in args)
        for unknown in ("%ld", "%lu", "%lld", "%u"):
            format_str = format_str.replace(unknown, "%d")
        print(format_str % values, end="")  # noqa: T201  (as above)


@tiles("dump_tensor")
def dump_tensor(tensor: Any, desc: int, dump_size: int, shape_info: Any = ()) -> None:
    """Prints the first elements of a tile."""
    if _prints(current()):
        values = np.asarray(memory_of(tensor).view()).reshape(-1)[:dump_size]
        print(f"dump {desc}:", values.reshape(tuple(shape_info)) if len(shape_info) else values)  # noqa: T201  (as above)
