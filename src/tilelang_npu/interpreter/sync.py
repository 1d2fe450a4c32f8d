"""Executes flags between cores, barriers, ``T.use_swizzle`` and the printing operations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tilelang_npu.interpreter.host_buffers import ScalarVariable, TileRef, integer, memory_of
from tilelang_npu.interpreter.launch import running_launch
from tilelang_npu.interpreter.operation_table import tiles
from tilelang_npu.interpreter.running_core import Core, current, fail
from tilelang_npu.interpreter.typed_scalars import binary, is_literal, scalar


@tiles("set_flag", "wait_flag", "init_flag", "clear_flag",
       "tile.datacachecleanandinvalid_experiment")
def order_of_pipes(*_: object, **__: object) -> None:
    """Does nothing: the operation orders pipes of one core, whose operations the interpreter executes one after another anyway.
    """


def _flag(flag: object, pipe: str, *, mode: int | None = None, waits: bool = False) -> None:
    """Sets a flag with a mode, or waits for a flag, if this core is the one that executes the statement.

    The core of the enclosing ``T.Scope`` executes it; outside of a ``T.Scope``, the only core that has the pipe.
    """
    core = current()
    name = pipe.upper().removeprefix("PIPE_")
    kind = core.scope or {"V": "vector", "M": "cube", "MTE1": "cube", "FIX": "cube"}.get(name)
    if core.kind == "all" or (kind is not None and not core.executes(kind)):
        return
    launch = running_launch()
    schedule = launch.schedule
    if mode is not None:
        schedule.raise_flag(core, integer(flag), mode)
    if waits:
        schedule.wait_for_flag(core, integer(flag), launch.blocks * (launch.vectors if core.kind == "vector" else 1))


@tiles("set_cross_flag")
def set_cross_flag(pipe: str, flag: object, mode: int = 2) -> None:
    """Sets a flag for the cores that the mode selects (``T.set_cross_flag``)."""
    _flag(flag, pipe, mode=mode)


@tiles("wait_cross_flag")
def wait_cross_flag(flag: object, pipe: str = "") -> None:
    """Waits until a flag is set, and consumes one set of the flag (``T.wait_cross_flag``)."""
    _flag(flag, pipe, waits=True)


def _flag_of_pipe(mode: int | None, waits: bool, id: object) -> None:  # noqa: A002  (the language's name)
    """Sets a flag, or waits for it, with the pipe of the enclosing ``T.rs``."""
    _flag(id, current().pipes[-1] if current().pipes else "", mode=mode, waits=waits)


tiles("sync_block_set")(partial(_flag_of_pipe, 2, False))
tiles("sync_block_wait")(partial(_flag_of_pipe, None, True))
tiles("block_barrier")(partial(_flag_of_pipe, 0, True))
tiles("subblock_barrier")(partial(_flag_of_pipe, 1, True))


_CORES_OF_BARRIER = {"AICOnly": "cube", "AIVOnly": "vector", "Mix": None}


@tiles("sync_all", "sync_grid")
def sync_all(mode: str | None = None) -> None:
    """Waits until the cores that take part have reached the same barrier (``T.sync_all``).

    ``mode`` states these cores; without it, they are the cores of the enclosing ``T.Scope``, or all cores.
    """
    core = current()
    if mode is not None and mode not in _CORES_OF_BARRIER:
        raise fail(f"T.sync_all: there is no mode {mode!r}", "the modes are AICOnly, AIVOnly and Mix", "T145")
    cores = core.scope if mode is None else _CORES_OF_BARRIER[mode]
    if core.scope is not None and cores not in (None, core.scope):
        raise fail(f'T.sync_all("{mode}"): no {core.scope} core takes part in this barrier',
                   f"write T.sync_all(), at which the {core.scope} cores wait for each other", "T161")
    launch = running_launch()
    if core.kind == "all" and core.scope is not None and cores is None:
        # a core that meets the other kind takes part, even if the data of the probe let it do nothing else
        launch.kinds.add(core.scope)
    if core.kind == "all" or core.scope not in (None, core.kind) or cores not in (None, core.kind):
        return
    schedule = launch.schedule
    kinds = {cores} if cores is not None else {core.kind, *launch.kinds} if core.scope is not None else {"cube", "vector"}
    count = launch.blocks * sum(1 if kind == "cube" else launch.vectors for kind in kinds)
    own = ("sync_all", cores, core.block, core.kind, core.vector)
    schedule.consumed[own] += 1
    meeting = ("sync_all", cores, schedule.consumed[own])
    schedule.raised[meeting] += 1
    schedule.wait(core, lambda: schedule.raised[meeting] >= count, "T.sync_all")


@tiles("use_swizzle")
def use_swizzle(cid: int = 0, m: int | str | None = None, n: int = 0, k: object = None, block_m: int = 1, block_n: int = 1,
                off: int = 1, dir: int = 0, in_loop: bool = False,  # noqa: A002  (the language's name)
                **panels: object) -> object:
    """Returns the row-major index of the tile that a block computes (``T.use_swizzle``).

    The tiles are visited in bands of ``off`` rows (columns, if ``dir`` is 1), every second band in reverse order. The variant
    for GPUs only changes the order of the blocks, which has no effect on the results.
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
def print_(obj: object, msg: str = "", hex: bool = False) -> None:  # noqa: A002  (the language's name)
    """Prints a tile or a number (``T.print``)."""
    if _prints(current()):
        print(msg, obj.view() if isinstance(obj, TileRef) and not isinstance(obj, ScalarVariable) else obj)  # noqa: T201  (what the kernel asks for)


@tiles("printf")
def printf(format_str: str, *args: object) -> None:
    """Prints a format string with its arguments inserted (``T.printf``)."""
    if _prints(current()):
        values = tuple(value if isinstance(value, str) or is_literal(value) else scalar(value).value.item() for value in args)
        for unknown in ("%ld", "%lu", "%lld", "%u"):
            format_str = format_str.replace(unknown, "%d")
        print(format_str % values, end="")  # noqa: T201  (as above)


@tiles("dump_tensor")
def dump_tensor(tensor: object, desc: int, dump_size: int, shape_info: Sequence[int] = ()) -> None:
    """Prints the first ``dump_size`` elements of a tile (``T.dump_tensor``)."""
    if _prints(current()):
        values = np.asarray(memory_of(tensor).view()).reshape(-1)[:dump_size]
        print(f"dump {desc}:", values.reshape(tuple(shape_info)) if len(shape_info) else values)  # noqa: T201  (as above)
