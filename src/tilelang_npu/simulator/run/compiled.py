"""From a device function to Python: the source, its line table, and the functions it defines."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import CodeType
from typing import Any, Protocol

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import TileError
from tilelang_npu.ops.rearrange import OutsideError
from tilelang_npu.simulator.codegen import PythonEmitter
from tilelang_npu.simulator.codegen.data_uses import DataUses
from tilelang_npu.simulator.codegen.handlers import op_name
from tilelang_npu.simulator.codegen.lines import Line, MadeArray
from tilelang_npu.simulator.codegen.own_numbers import own_numbers
from tilelang_npu.simulator.codegen.reach import LeavesAxisError
from tilelang_npu.simulator.codegen.stacked import StackedEmitter
from tilelang_npu.simulator.codegen.traced import TracingEmitter, Witness
from tilelang_npu.simulator.machine.datapath import Product
from tilelang_npu.simulator.machine.events import Event
from tilelang_npu.simulator.machine.memory import Array, shared_names
from tilelang_npu.simulator.machine.stack import Flow, Stack
from tilelang_npu.simulator.run.arguments import parameters
from tilelang_npu.simulator.run.endless import Guard
from tilelang_npu.target import Chip

Form = Callable[[FuncOp, str, Chip, int], PythonEmitter]
"""What makes an emitter of a function, its core, the chip and the number of sub-blocks."""
_NUMBERS = itertools.count(1)


class Run(Protocol):
    """Runs a block on a core; a generator where it waits for other cores, or hands its ops to a schedule.

    It appends to ``ev`` the events and to ``gm`` the places in GM. ``counts`` are the flags that are set for the core, and
    ``set_flag`` sets one for others.
    """

    def __call__(self, bid: int, ev: list[Event], gm: list[int] | None, counts: list[int] | None,
                 set_flag: Callable[[int, str], None] | None, /) -> Any: ...


class Bind(Protocol):
    """Binds the code of a core to the arguments of a launch and to what it works with, its memories last.

    ``stack`` tells of the blocks that run as one, where the code runs several at once.
    """

    def __call__(self, arrays: Sequence[Array | None], scalars: Sequence[float], dims: Sequence[tuple[int, ...]], nblocks: int,
                 sid: int, scratch: Callable[[Product], object], guard: Guard, witness: Witness | None, stack: Stack | None, /,
                 *memories: Array | None) -> Run: ...


_BIND = "def bind(arrays, scalars, dims, nblocks, sid, scratch, guard, witness, stack, {memories}):"
_RUN = "    def run(bid, ev, gm, counts, set_flag):"


class CompiledFunction:
    """One device function as Python. Any number of threads may run it: what changes while it runs is handed to ``bind``.

    Args:
        function: the function.
        core: ``AIC`` or ``AIV``.
        chip: the chip it runs on.
        parallel: sub-blocks that run it.
        form: what is made of its ops: code that runs them, or one of the other emitters'.

    Attributes:
        records: what is known of each op, by the number in the events.
        recorded: the ops themselves, by the same number.
        source: the generated source; tracebacks and debuggers show it.
        extents: used bytes of each on-chip memory.
        open_ended: memories on chip in which some op's place is only known when it runs.
        switches: whether ``run`` is a generator, because it waits for other cores.
        global_sync: whether it waits for other blocks.
        bind: gives the code of a core, for the arguments of a launch and what it works with: a ``Scratch``, a ``Guard``, a
            ``Witness`` where it only tells what it does, and its memories.
    """

    def __init__(self, function: FuncOp, core: str, chip: Chip, parallel: int, *, form: Form = PythonEmitter) -> None:
        emitter = form(function, core, chip, parallel)
        emitter.emit_block(function.body.block)
        emitter.flush()
        self.function, self.core, self.parallel = function, core, parallel
        self.name = function.sym_name.data
        self.records = tuple(emitter.records)
        self.recorded = tuple(emitter.recorded)
        self.extents = dict(emitter.extents)
        self.open_ended = frozenset(emitter.open_ended)
        self.switches = emitter.switches
        self.stops = tuple(emitter.stops)
        self.global_sync = emitter.global_sync
        self.filename = f"<{self.name} on {core} #{next(_NUMBERS)}>"
        self._lines: list[Line | None] = [None]
        self.source = self._assemble(emitter)
        self._globals = emitter.globals
        self._code: CodeType = compile(self.source, self.filename, "exec")
        self.bind = self.bind_with(np.ndarray)
        lines = self.source.splitlines(keepends=True)
        linecache.cache[self.filename] = (len(self.source), None, lines, self.filename)
        weakref.finalize(self, linecache.cache.pop, self.filename, None)

    def bind_with(self, view: Callable[..., object]) -> Bind:
        """``bind`` of code that makes arrays with something else than NumPy's."""
        scope: dict[str, Any] = {**self._globals, "nd": view}
        exec(self._code, scope)
        bind: Bind = scope["bind"]
        return bind

    def _assemble(self, emitter: PythonEmitter) -> str:
        texts = [_BIND.format(memories=", ".join(shared_names(emitter.chip)))]
        for line in emitter.launch.lines:
            texts.append("    " * line.indent + line.text)
            self._lines.append(line)
        texts.append(_RUN)
        self._lines.append(None)
        for line in emitter.block.lines:
            texts.append("    " * line.indent + line.text)
            self._lines.append(line)
        texts.append("        return")
        texts.append("    return run\n")
        return "\n".join(texts)

    def explain(self, error: Exception, block: int, workspace: str) -> TileError | None:
        """What an exception in the generated code means for the kernel; None where it is no fault of the kernel's.

        Args:
            error: the exception.
            block: the block that ran.
            workspace: who says how large the workspace is.
        """
        frame = None
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.filename:
                frame, number = trace.tb_frame, trace.tb_lineno
            trace = trace.tb_next
        if frame is None or isinstance(error, Warning):
            return None
        line = self._lines[number - 1] if number <= len(self._lines) else None
        op = line.op if line is not None else None
        location = location_of(op) if op is not None else None
        if isinstance(error, TileError):
            return error.at(location)
        name = op_name(op) if op is not None else self.name
        name = location.names(name) if location is not None else name
        where = f"in block {block}"
        if isinstance(error, ZeroDivisionError):
            return TileError(f"{name} divides by zero {where}", code="T509", location=location,
                             help="divide only where the divisor is not 0")
        if isinstance(error, LeavesAxisError):
            return TileError(f"{name} {error} {where}", code="T502", location=location,
                             help="clamp the start, or leave out the part that is not there")
        if not isinstance(error, (ValueError, TypeError, IndexError, OverflowError)):
            return None
        if line is not None and line.made is not None:
            what, help_ = _failed_view(line.made, {**frame.f_globals, **frame.f_locals})
            if line.made.argument in {one.index for one in parameters(self.function) if one.role == "workspace"}:
                help_ = workspace
            return TileError(f"{name} {what} {where}", code="T502", location=location, help=help_)
        if isinstance(error, OutsideError):
            return TileError(f"{name} asks for elements that are not there {where}", code="T502", location=location,
                             notes=(str(error),), help="check the data that it takes positions from")
        return TileError(f"the operands of {name} do not fit each other {where}", code="T502", location=location,
                         notes=(str(error),), help="the sizes of source and destination must agree")


class TracedFunction(CompiledFunction):
    """A device function that computes nothing.

    Attributes:
        data: what depends on the numbers that it reads from memory.
    """

    def __init__(self, function: FuncOp, core: str, chip: Chip, parallel: int) -> None:
        self.data = DataUses(function)
        super().__init__(function, core, chip, parallel, form=partial(TracingEmitter, self.data))


class StackedFunction(CompiledFunction):
    """A device function that runs many blocks as one.

    Attributes:
        flow: where the numbers come from that it has on chip.
        has_own: whether it has scalars of which each block has one for itself.

    Raises:
        ApartError: its blocks cannot.
    """

    def __init__(self, function: FuncOp, core: str, chip: Chip, parallel: int) -> None:
        self.flow = Flow()
        self.has_own = bool(own_numbers(function))
        super().__init__(function, core, chip, parallel, form=partial(StackedEmitter, self.flow))


def _failed_view(made: MadeArray, names: Mapping[str, Any]) -> tuple[str, str]:
    """What is wrong with the array that a line makes, with its numbers, and what to do."""
    shape = [size.value(names) for size in made.sizes]
    if min(shape, default=0) < 0:
        return (f"has an operand of {' x '.join(map(str, shape))} elements",
                "clamp the size of the last tile to zero, or let the block do nothing")
    offset = made.offset.value(names) if all(names[size] for size in made.unless) else 0
    last = offset + sum((size - 1) * stride.value(names) for size, stride in zip(shape, made.strides, strict=True))
    return (f"touches bytes {offset}..{last + made.element - 1} of {made.called}, which has {names[made.memory].size} bytes",
            "check the offset and the size against the shape")


def functions_of(module: ModuleOp) -> list[FuncOp]:
    """The functions of a module that have a body."""
    found = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks]
    for function in found:
        if len(function.body.blocks) > 1:
            raise TileError(f"{function.sym_name.data} has several blocks, and what jumps between them is not executed",
                            code="T501", location=location_of(function), help="write loops and branches as scf ops")
    return [function for function in found if function.body.block.ops]
