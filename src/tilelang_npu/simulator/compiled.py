"""From a device function to Python: the source, its line table, and the functions it defines."""

from __future__ import annotations

import itertools
import linecache
import traceback
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilelang_npu.errors import TileError
from tilelang_npu.simulator.codegen import Emitter
from tilelang_npu.simulator.codegen.emitter import op_name
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import Chip

_NUMBERS = itertools.count(1)
_HEADER = ("def bind(arrays, scalars, dims, nblocks, sid, m_ub, m_cbuf, m_ca, m_cb, m_cc, m_bt, m_fb):",
           "    def run(bid, ev, gm, counts, set_flag):")


class CompiledFunction:
    """One device function as Python.

    Args:
        function: the function.
        core: ``AIC`` or ``AIV``.
        chip: the chip it runs on.
        parallel: sub-blocks that run it.

    Attributes:
        records: what is known of each op, by the number in the events.
        source: the generated source; tracebacks and debuggers show it.
        extents: used bytes of each on-chip memory.
        switches: whether ``run`` is a generator, because it waits for other cores.
        global_sync: whether it waits for other blocks.
    """

    def __init__(self, function: FuncOp, core: str, chip: Chip, parallel: int) -> None:
        emitter = Emitter(function, core, chip, parallel)
        emitter.emit_block(function.body.block)
        emitter.flush()
        self.name = function.sym_name.data
        self.core = core
        self.records = tuple(emitter.records)
        self.extents = dict(emitter.extents)
        self.switches = emitter.switches
        self.global_sync = emitter.global_sync
        self.filename = f"<{self.name} on {core} #{next(_NUMBERS)}>"
        self._ops: list[Operation | None] = [None]
        self.source = self._assemble(emitter)
        scope: dict[str, Any] = {**emitter.globals, "nd": np.ndarray}
        code: CodeType = compile(self.source, self.filename, "exec")
        exec(code, scope)  # noqa: S102  (the source is generated from the module above)
        self.bind: Callable[..., Callable[..., Any]] = scope["bind"]
        lines = self.source.splitlines(keepends=True)
        linecache.cache[self.filename] = (len(self.source), None, lines, self.filename)
        weakref.finalize(self, linecache.cache.pop, self.filename, None)

    def _assemble(self, emitter: Emitter) -> str:
        texts = [_HEADER[0]]
        for line in emitter.launch.lines:
            texts.append("    " * line.indent + line.text)
            self._ops.append(line.op)
        texts.append(_HEADER[1])
        self._ops.append(None)
        for line in emitter.block.lines:
            texts.append("    " * line.indent + line.text)
            self._ops.append(line.op)
        texts.append("        return")
        texts.append("    return run\n")
        return "\n".join(texts)

    def explain(self, error: Exception, block: int) -> TileError | None:
        """What an exception in the generated code means for the kernel; None where it came from elsewhere."""
        place = None
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == self.filename:
                place = frame.lineno
        if place is None or isinstance(error, Warning):
            return None
        op = self._ops[place - 1] if place - 1 < len(self._ops) else None
        name = op_name(op) if op is not None else self.name
        location = location_of(op) if op is not None else None
        if isinstance(error, TileError):
            return error.at(location)
        text = str(error)
        if isinstance(error, ZeroDivisionError):
            return TileError(f"{name} divides by zero in block {block}", code="T509", location=location)
        if "negative dimensions" in text:
            what, help_ = "has a negative size", "clamp sizes of tails to zero, or leave the block out"
        elif "broadcast" in text:
            what, help_ = "has operands whose shapes do not fit", "the sizes of source and destination must agree"
        else:
            what, help_ = "reaches beyond its memory", "check the offset and the size against the tensor's shape"
        return TileError(f"an operand of {name} {what} in block {block}", code="T502", location=location, notes=(text,),
                         help=help_)


def functions_of(module: ModuleOp) -> list[FuncOp]:
    """The functions of a module that have a body."""
    return [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks and op.body.block.ops]
