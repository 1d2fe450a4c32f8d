"""A device function as Python: the source, its line table, and the compiled code."""

from __future__ import annotations

import itertools
import linecache
import marshal
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from tilelang_npu.errors import Location, TileError
from tilelang_npu.ops.rearrange import OutsideError
from tilelang_npu.sharing import once, state_of
from tilelang_npu.simulator.machine.axis_bounds import AxisBoundsError
from tilelang_npu.simulator.machine.batch_layout import BatchLayout, OnChipFlow
from tilelang_npu.simulator.machine.datapath import Product
from tilelang_npu.simulator.machine.memory import Array, shared_names
from tilelang_npu.simulator.machine.op_records import Event
from tilelang_npu.simulator.machine.placeholder_data import PlaceholderData
from tilelang_npu.simulator.run.loop_limits import LoopGuard

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from tilelang_npu.simulator.codegen import PythonEmitter
    from tilelang_npu.simulator.codegen.code_scopes import Line, MadeArray
    from tilelang_npu.simulator.codegen.observed_emitter import Observer
    from tilelang_npu.simulator.machine.placeholder_data import DataUses

_NUMBERS = itertools.count(1)


class Run(Protocol):
    """Runs a block on a core; a generator if the code waits for other cores or yields its ops.

    It appends events to ``ev`` and GM offsets to ``gm``. ``counts`` are the flags of the core, and ``set_flag`` sets a flag on
    other cores.
    """

    def __call__(self, bid: int, ev: list[Event], gm: list[int] | None, counts: list[int] | None,
                 set_flag: Callable[[int, str], None] | None, /) -> Any: ...


class Bind(Protocol):
    """Binds the code of a core to the arguments of a launch, its resources, and last its memories.

    ``layout`` is the layout of the batch, for code that runs several blocks at once.
    """

    def __call__(self, arrays: Sequence[Array | None], scalars: Sequence[float], dims: Sequence[tuple[int, ...]], nblocks: int,
                 sid: int, scratch: Callable[[Product], object], guard: LoopGuard, placeholder: PlaceholderData | None,
                 layout: BatchLayout | None, /, *memories: Array | None) -> Run: ...


_BIND = "def bind(arrays, scalars, dims, nblocks, sid, scratch, guard, placeholder, layout, {memories}):"
_RUN = "    def run(bid, ev, gm, counts, set_flag):"


class LineFacts(NamedTuple):
    """The facts that explain an error in a generated line: the op that it executes, the array that it creates."""

    name: str | None
    location: Location | None
    made: MadeArray | None


class CompiledFunction:
    """One device function as Python. Any number of threads may run it: mutable state is passed to ``bind``.

    It keeps nothing of the IR, so it can be pickled if its constants can.

    Args:
        emitter: has generated all lines.

    Attributes:
        name: the function's name.
        core: ``AIC`` or ``AIV``.
        parallel: sub-blocks that run it.
        records: the record of each op, by its number in the events.
        recorded: the ops of the records; None after unpickling.
        source: the generated source, which tracebacks and debuggers show.
        extents: used bytes of each on-chip memory.
        open_ended: on-chip memories with an access whose place is only known at run time.
        switches: whether ``run`` is a generator, because it waits for other cores.
        global_sync: whether it waits for other blocks.
        bind: binds the code to a launch and a core.
    """

    def __init__(self, emitter: PythonEmitter) -> None:
        self.name, self.core, self.parallel = emitter.function.sym_name.data, emitter.core, emitter.parallel
        self.records = emitter.finished_records()
        self.recorded: tuple[Operation, ...] | None = tuple(emitter.recorded)
        self.extents = dict(emitter.extents)
        self.open_ended = frozenset(emitter.open_ended)
        self.switches = emitter.switches
        self.global_sync = emitter.global_sync
        self._emitted: list[Line | None] = [None]
        self.source = self._assemble(emitter)
        self._globals = emitter.globals
        self.filename = self._new_name()
        self._code: CodeType = compile(self.source, self.filename, "exec")
        self._show()

    def _new_name(self) -> str:
        return f"<{self.name} on {self.core} #{next(_NUMBERS)}>"

    def _show(self) -> None:
        """Makes the source available to tracebacks and debuggers, as long as the function lives."""
        lines = self.source.splitlines(keepends=True)
        linecache.cache[self.filename] = (len(self.source), None, lines, self.filename)
        weakref.finalize(self, linecache.cache.pop, self.filename, None)

    @once
    def bind(self) -> Bind:
        return self.bind_with(np.ndarray)

    def bind_with(self, view: Callable[..., object], observer: Observer | None = None) -> Bind:
        """Returns ``bind`` of code that creates arrays with another function than NumPy's, or is observed."""
        scope: dict[str, Any] = {**self._globals, "nd": view, "observer": observer}
        exec(self._code, scope)
        bind: Bind = scope["bind"]
        return bind

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in state_of(self).items() if name not in ("_emitted", "filename")} | {
            "recorded": None, "_code": marshal.dumps(self._code), "_lines": self._lines}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.filename = self._new_name()
        self._code = _renamed(marshal.loads(state["_code"]), self.filename)
        self._show()

    def _assemble(self, emitter: PythonEmitter) -> str:
        texts = [_BIND.format(memories=", ".join(shared_names(emitter.chip)))]
        for line in emitter.launch.lines:
            texts.append("    " * line.indent + line.text)
            self._emitted.append(line)
        texts.append(_RUN)
        self._emitted.append(None)
        for line in emitter.block.lines:
            texts.append("    " * line.indent + line.text)
            self._emitted.append(line)
        texts.append("        return")
        texts.append("    return run\n")
        return "\n".join(texts)

    @once
    def _lines(self) -> tuple[LineFacts | None, ...]:
        """The facts about each line, made when an error needs them."""
        from tilelang_npu.dialects.text import location_of
        from tilelang_npu.simulator.codegen.handlers import op_name

        return tuple(
            None if line is None else LineFacts(None, None, line.made) if line.op is None else
            LineFacts(op_name(line.op), location_of(line.op), line.made) for line in self._emitted)

    def explain(self, error: Exception, block: int, workspace: str, workspaces: Collection[int]) -> TileError | None:
        """Returns the user's error for an exception in the generated code; None if it is not the kernel's fault.

        Args:
            error: the exception.
            block: the block that ran.
            workspace: where the size of the workspace comes from, for the advice.
            workspaces: the positions of the workspace arguments.
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
        location = line.location if line is not None else None
        if isinstance(error, TileError):
            return error.at(location)
        name = line.name if line is not None and line.name is not None else self.name
        name = location.names(name) if location is not None else name
        where = f"in block {block}"
        if isinstance(error, ZeroDivisionError):
            return TileError(f"{name} divides by zero {where}", code="T509", location=location,
                             help="divide only where the divisor is not 0")
        if isinstance(error, AxisBoundsError):
            return TileError(f"{name} {error} {where}", code="T502", location=location,
                             help="clamp the start, or leave out the part that is not there")
        if not isinstance(error, (ValueError, TypeError, IndexError, OverflowError)):
            return None
        if line is not None and line.made is not None:
            what, help_ = _failed_view(line.made, {**frame.f_globals, **frame.f_locals})
            if line.made.argument in workspaces:
                help_ = workspace
            return TileError(f"{name} {what} {where}", code="T502", location=location, help=help_)
        if isinstance(error, OutsideError):
            return TileError(f"{name} asks for elements that are not there {where}", code="T502", location=location,
                             notes=(str(error),), help="check the data that it takes positions from")
        return TileError(f"the operands of {name} do not fit each other {where}", code="T502", location=location,
                         notes=(str(error),), help="the sizes of source and destination must agree")


def _renamed(code: CodeType, filename: str) -> CodeType:
    """Returns code, and the functions in it, with another file name, by which errors are attributed."""
    return code.replace(co_filename=filename, co_consts=tuple(
        _renamed(constant, filename) if isinstance(constant, CodeType) else constant for constant in code.co_consts))


class TracedFunction(CompiledFunction):
    """A device function that records its ops and computes nothing.

    Attributes:
        data: its data-dependent behaviour.
    """

    def __init__(self, emitter: PythonEmitter, data: DataUses) -> None:
        super().__init__(emitter)
        self.data = data


class BatchedFunction(CompiledFunction):
    """A device function that runs many blocks at once.

    Attributes:
        flow: its data flow on chip.
        has_own: whether it has scalars whose value differs between blocks.
    """

    def __init__(self, emitter: PythonEmitter, flow: OnChipFlow, *, has_own: bool) -> None:
        super().__init__(emitter)
        self.flow, self.has_own = flow, has_own


def _failed_view(made: MadeArray, names: Mapping[str, Any]) -> tuple[str, str]:
    """Returns what is wrong with the array that a line creates, with numbers, and the advice."""
    shape = [size.value(names) for size in made.sizes]
    if min(shape, default=0) < 0:
        return (f"has an operand of {' x '.join(map(str, shape))} elements",
                "clamp the size of the last tile to zero, or let the block do nothing")
    offset = made.offset.value(names) if all(names[size] for size in made.unless) else 0
    last = offset + sum((size - 1) * stride.value(names) for size, stride in zip(shape, made.strides, strict=True))
    return (f"touches bytes {offset}..{last + made.element - 1} of {made.called}, which has {names[made.memory].size} bytes",
            "check the offset and the size against the shape")
