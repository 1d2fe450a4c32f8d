"""``breakpoint()`` in a kernel: what a debugger is to see of it."""

from __future__ import annotations

import builtins
import json
import sys
from collections.abc import Iterator
from typing import Any

from xdsl.ir import BlockArgument, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.effects import effects_of, is_memory
from tilelang_npu.dialects.tile.calls import Fact
from tilelang_npu.errors import TileError
from tilelang_npu.frontend.scopes import Scopes
from tilelang_npu.target import memories
from tilelang_npu.traced.buffers import Buffer, Element, Variable
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import number
from tilelang_npu.traced.scalars import Expr

_WHAT = "breakpoint()"
_ELSEWHERE = {"vector": memories("AIC"), "cube": memories("AIV")}
"""The memories that the core of a ``T.Scope`` does not have."""
_DEBUGGERS = ("pdb.set_trace", "ipdb.set_trace", "pudb.set_trace", "debugpy.breakpoint")


def stops(function: Any) -> bool:
    """Whether a call of a function is a stop of the kernel.

    Raises:
        TileError: T144, it stops where it is called, which is while the kernel is compiled.
    """
    for called in _DEBUGGERS:
        module, _, name = called.partition(".")
        if function is not None and function is getattr(sys.modules.get(module), name, None):
            raise TileError(f"{called} stops where it is called, which is while the kernel is compiled", code="T144",
                            help=f"write breakpoint(), at which the run stops; PYTHONBREAKPOINT={called} chooses this one")
    return function is builtins.breakpoint


def stop_here(builder: Builder, scopes: Scopes, function: str, given: int) -> None:
    """Emit a stop, with all that has a name here; ``function`` is whose source it is, ``given`` how many arguments it has.

    Raises:
        TileError: T145, it has arguments; T160, it is outside of ``T.Kernel``; T141, in ``T.Parallel``.
    """
    if given:
        raise TileError(f"{_WHAT} in a kernel takes no arguments", code="T145",
                        help="PYTHONBREAKPOINT chooses the debugger, TILELANG_NPU_BREAK the block")
    builder.require_kernel(_WHAT)
    if builder.in_parallel:
        raise TileError(f"{_WHAT} cannot stand inside T.Parallel, whose body computes single elements", code="T141",
                        help="put it in front of the loop or behind it, and look at the tiles")
    launched = builder.launches[-1]
    indices = launched.body.block.args
    axes = len(launched.grid)
    sub_block = indices[axes] if launched.explicit_sub_block is not None else None
    values: list[SSAValue] = list(indices[:axes])
    names: list[str] = []
    facts: dict[str, Fact] = {"function": function}
    constants: dict[str, Any] = {}
    tensors: dict[str, int] = {}
    unwritten: dict[str, str] = {}
    for name, value in scopes.visible().items():
        for called, buffer in _buffers(name, value):
            if buffer.space == "gm":
                if isinstance(buffer.value, BlockArgument):
                    tensors[called] = buffer.value.index
            elif buffer.space in _ELSEWHERE.get(builder.core or "", ()):
                continue
            elif _is_written(buffer.value):
                builder.tile_op(tile.LookOp(buffer.ssa(builder), called), _WHAT)
            else:
                unwritten[called] = buffer.describe()
        if isinstance(value, (bool, int, float, str)):
            constants[name] = value
        elif (found := _scalar(builder, value)) is not None:
            if found is sub_block:
                facts["sub_block"] = name
            names.append(name)
            values.append(found)
    facts["names"] = ",".join(names)
    facts |= {fact: json.dumps(held) for fact, held in
              (("constants", constants), ("tensors", tensors), ("unwritten", unwritten)) if held}
    builder.tile_op(tile.BreakpointOp(axes, values, facts), _WHAT)


def _buffers(name: str, value: Any) -> Iterator[tuple[str, Buffer]]:
    """The buffers that a name stands for: one, or those of a list."""
    if isinstance(value, Buffer) and not isinstance(value, Variable):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for place, each in enumerate(value):
            yield from _buffers(f"{name}[{place}]", each)


def _scalar(builder: Builder, value: Any) -> SSAValue | None:
    """The number that a name stands for, where only a run knows it."""
    if isinstance(value, Variable):
        value = value.place
    if isinstance(value, Element) and not isinstance(value.buffer, Variable):
        return None
    if not isinstance(value, (Expr, Element)):
        return None
    found = number(builder, value)
    return found.ssa(builder) if isinstance(found, Expr) else None


def _is_written(value: SSAValue) -> bool:
    """Whether something that stands here writes a buffer or a part of it."""
    for use in value.uses:
        if any(effect.index == use.index and effect.writes for effect in effects_of(use.operation)):
            return True
        if any(is_memory(view) and _is_written(view) for view in use.operation.results):
            return True
    return False
