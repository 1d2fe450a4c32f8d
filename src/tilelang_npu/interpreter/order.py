"""Events, flags and barriers; output of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelang_npu.interpreter.memory import Memory, Variable, integer, memory_of
from tilelang_npu.interpreter.state import Core, current
from tilelang_npu.interpreter.table import OPERATIONS, tiles
from tilelang_npu.interpreter.values import binary, compare, is_literal, scalar, select


@tiles("barrier_all", "pipe_barrier", "set_flag", "wait_flag", "init_flag", "clear_flag",
       "tile.datacachecleanandinvalid_experiment")
def order_of_pipes(*_: Any, **__: Any) -> None:
    """Orders the pipes of one core, which the interpreter executes one operation after the other."""


def _total(core: Core) -> int:
    """Number of cores of this kind in the launch."""
    return core.launch.blocks * (core.launch.vectors if core.kind == "vector" else 1)


def _is_here(core: Core, pipe: str = "") -> bool:
    """Whether a flag's operation is this core's: that of the ``T.Scope``, or the only one that has the pipe."""
    name = str(pipe).upper().removeprefix("PIPE_")
    kind = core.scope or {"V": "vector", "M": "cube", "MTE1": "cube", "FIX": "cube"}.get(name)
    return kind is None or core.executes(kind)


@tiles("set_cross_flag")
def set_cross_flag(pipe: str, flag: Any, mode: int = 2) -> None:
    """Raise a flag to other cores."""
    core = current()
    if core.kind != "all" and _is_here(core, pipe):
        core.launch.schedule.raise_flag(core, integer(flag), mode)


@tiles("wait_cross_flag")
def wait_cross_flag(flag: Any, pipe: str = "") -> None:
    """Hold the core until a flag was raised."""
    core = current()
    if core.kind != "all" and _is_here(core, pipe):
        core.launch.schedule.wait_for_flag(core, integer(flag), _total(core))


@tiles("sync_block_set")
def sync_block_set(id: Any) -> None:  # noqa: A002  (the language's name)
    """Raise a flag to the other cores of the block."""
    core = current()
    if core.kind != "all" and _is_here(core, core.pipes[-1] if core.pipes else ""):
        core.launch.schedule.raise_flag(core, integer(id), 2)


@tiles("sync_block_wait")
def sync_block_wait(id: Any) -> None:  # noqa: A002  (the language's name)
    """Hold the core until another core of the block raised a flag."""
    core = current()
    if core.kind != "all" and _is_here(core, core.pipes[-1] if core.pipes else ""):
        core.launch.schedule.wait_for_flag(core, integer(id), _total(core))


def _meeting(id: Any, mode: int) -> None:  # noqa: A002  (as above)
    core = current()
    if core.kind != "all" and _is_here(core, core.pipes[-1] if core.pipes else ""):
        core.launch.schedule.raise_flag(core, integer(id), mode)
        core.launch.schedule.wait_for_flag(core, integer(id), _total(core))


OPERATIONS["block_barrier"] = lambda id: _meeting(id, 0)  # noqa: A006  (the language's name)
OPERATIONS["subblock_barrier"] = lambda id: _meeting(id, 1)  # noqa: A006  (as above)


@tiles("sync_all")
def sync_all() -> None:
    """All cores of the launch wait for each other; inside ``T.Scope`` those of its kind."""
    core = current()
    if core.kind == "all":
        return
    launch, schedule = core.launch, core.launch.schedule
    if core.scope is not None and core.kind != core.scope:
        return
    meeting = ("all", core.scope)
    count = launch.blocks * (1 if core.scope == "cube" else launch.vectors if core.scope == "vector" else launch.vectors + 1)
    schedule.consumed[meeting, core.block, core.kind, core.vector] += 1
    number = schedule.consumed[meeting, core.block, core.kind, core.vector]
    schedule.raised[meeting, number] += 1
    schedule.wait(core, lambda: schedule.raised[meeting, number] >= count, "T.sync_all")


# --- the order of tiles --------------------------------------------------------------------------------------------------


@tiles("use_swizzle")
def use_swizzle(cid: Any = None, m: Any = None, n: Any = None, k: object = None, block_m: Any = None, block_n: Any = None,
                off: int = 1, dir: int = 0, in_loop: bool = False, **panels: Any) -> Any:  # noqa: A002  (the language's name)
    """The tile that a block takes: bands of ``off`` rows (columns with ``dir`` 1), every other one backwards. As kernels for a GPU
    write it, it orders the blocks, which has no effect on values."""
    if m is None or isinstance(m, str) or panels:
        return None
    rows, columns = m // block_m, n // block_n
    along, across = (rows, columns) if dir == 0 else (columns, rows)
    number = int(cid)
    if number >= rows * columns:
        return cid
    band, inside = divmod(number, off * across)
    width = min(off, along - band * off)
    first, second = band * off + inside % width, inside // width
    if band % 2:
        second = across - 1 - second
    row, column = (first, second) if dir == 0 else (second, first)
    return binary("add", binary("mul", cid, 0), row * columns + column)


# --- output --------------------------------------------------------------------------------------------------------------


def _is_printing(core: Core) -> bool:
    return core.kind in ("all", core.scope or "vector")


@tiles("print", "npuir_print")
def print_(obj: Any, msg: str = "", hex: bool = False) -> None:  # noqa: A002  (the language's name)
    """Print a tile or a number."""
    if _is_printing(current()):
        value = obj.view() if isinstance(obj, Memory) and not isinstance(obj, Variable) else obj
        print(msg, value)  # noqa: T201  (what the kernel asks for)


@tiles("printf")
def printf(format_str: str, *args: Any) -> None:
    """Print text with numbers in it."""
    if _is_printing(current()):
        values = tuple(value if isinstance(value, str) or is_literal(value) else scalar(value).value.item() for value in args)
        print(format_str.replace("%ld", "%d").replace("%lu", "%d").replace("%u", "%d") % values, end="")  # noqa: T201  (as above)


@tiles("dump_tensor")
def dump_tensor(tensor: Any, desc: int, dump_size: int, shape_info: Any = ()) -> None:
    """Print the first elements of a tile."""
    if _is_printing(current()):
        values = np.asarray(memory_of(tensor).view()).reshape(-1)[:dump_size]
        print(f"dump {desc}:", values.reshape(tuple(shape_info)) if len(shape_info) else values)  # noqa: T201  (as above)


del compare, select
