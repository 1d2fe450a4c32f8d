"""A device function that is compiled to Python: its source, the ops of its lines, and the code."""

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
from tilelang_npu.simulator.machine.cube_products import CubeProducts, NoProducts
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
    """The generated function that runs a block on a core; a generator if the code waits for other cores or yields its ops.

    Args:
        bid: the block index.
        ev: the list to which the function appends the events of the block.
        gm: the list to which the function appends the GM offsets of the block.
        counts: the flag counters of the core.
        set_flag: sets a flag, given its number and the group of cores.
    """

    def __call__(self, bid: int, ev: list[Event], gm: list[int] | None, counts: list[int] | None,
                 set_flag: Callable[[int, str], None] | None, /) -> Any: ...


class Bind(Protocol):
    """The generated function that binds the code to a launch and a core, and returns the function that runs a block.

    Args:
        arrays: the bytes of each argument; None for scalars.
        scalars: the value of each scalar argument; 0 for tensors.
        dims: the sizes of each argument; empty for scalars.
        nblocks: the number of blocks of the launch.
        sid: the index of the sub-block.
        products: computes the matrix products of the core.
        guard: limits the ops and iterations of the core.
        placeholder: supplies numbers in place of data in a trace; otherwise None.
        layout: the layout of the batch, for code that computes many blocks at once; otherwise None.
        memories: the bytes of the on-chip memories in the order of ``shared_names``.
    """

    def __call__(self, arrays: Sequence[Array | None], scalars: Sequence[float], dims: Sequence[tuple[int, ...]], nblocks: int,
                 sid: int, products: CubeProducts | NoProducts, guard: LoopGuard, placeholder: PlaceholderData | None,
                 layout: BatchLayout | None, /, *memories: Array | None) -> Run: ...


_BIND = "def bind(arrays, scalars, dims, nblocks, sid, products, guard, placeholder, layout, {memories}):"
_RUN = "    def run(bid, ev, gm, counts, set_flag):"


class LineFacts(NamedTuple):
    """The op, source line and array that an error message about a generated line names.

    Attributes:
        name: the name of the op that the line executes; None if it belongs to no op.
        location: the source line of the op in the kernel.
        made: the array that the line creates, if any.
    """

    name: str | None
    location: Location | None
    made: MadeArray | None


class CompiledFunction:
    """One device function that is compiled to Python.

    Several threads can run the function, because all mutable state is passed to ``bind``. The object can be pickled, without
    the IR, if the constants of the code can be pickled.

    Args:
        emitter: an emitter that has generated all lines of the function.

    Attributes:
        name: the function's name.
        core: ``AIC`` or ``AIV``.
        parallel: the number of sub-blocks that run the function.
        records: the record of each op; events refer to a record by its position.
        recorded: the op of each record; None after unpickling.
        source: the generated source, which tracebacks and debuggers show.
        filename: the name of the code in tracebacks, which is different for each object.
        extents: the number of bytes, from the start, that the function uses of each on-chip memory.
        open_ended: the on-chip memories with a view that is not known at compile time to lie inside its buffer.
        switches: whether the code sets or waits for flags of other cores, or yields its ops. The function that runs a block is
            then possibly a generator.
        global_sync: whether the function synchronises with other blocks, so that blocks must run concurrently.
        bind: the generated function of type ``Bind``, with ``numpy.ndarray`` to create arrays.
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
        """Returns the generated function of type ``Bind``.

        Args:
            view: the function that creates arrays in the code, in place of ``numpy.ndarray``.
            observer: the object that code of ``ObservedEmitter`` calls before and after each op.
        """
        scope: dict[str, Any] = {**self._globals, "nd": view, "observer": observer}
        exec(self._code, scope)
        bind: Bind = scope["bind"]
        return bind

    def __getstate__(self) -> dict[str, object]:
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
        """For each line of the source, the op, source line and array that an error message names; computed at the first error.
        """
        from tilelang_npu.dialects.text import location_of
        from tilelang_npu.simulator.codegen.handlers import op_name

        return tuple(
            None if line is None else LineFacts(None, None, line.made) if line.op is None else
            LineFacts(op_name(line.op), location_of(line.op), line.made) for line in self._emitted)

    def explain(self, error: Exception, block: int, workspace: str, workspaces: Collection[int]) -> TileError | None:
        """Returns the ``TileError`` for an exception in the generated code; None if no mistake in the kernel caused it.

        Args:
            error: the exception.
            block: the block that ran.
            workspace: the advice for an access beyond the end of a workspace.
            workspaces: the positions of the workspace arguments.

        Returns:
            T502, an access outside of a buffer or tensor, or operands whose shapes do not match; T509, a division by zero; or
            the ``TileError`` that the code raised, at the kernel's line.
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
                             help=error.help)
        if not isinstance(error, (ValueError, TypeError, IndexError, OverflowError)):
            return None
        if line is not None and line.made is not None:
            what, help_ = _failed_view(line.made, {**frame.f_globals, **frame.f_locals})
            if line.made.argument in workspaces:
                help_ = workspace
            return TileError(f"{name} {what} {where}", code="T502", location=location, help=help_)
        if isinstance(error, OutsideError):
            return TileError(f"{name} uses an index or offset that is out of bounds {where}", code="T502", location=location,
                             notes=(str(error),), help="check the data that the index or offset comes from")
        return TileError(f"the shapes or types of the operands of {name} do not match {where}", code="T502", location=location,
                         notes=(str(error),), help="the sizes of source and destination must agree")


def _renamed(code: CodeType, filename: str) -> CodeType:
    """Returns a code object, and the code objects nested in it, with another file name, by which tracebacks find the source."""
    return code.replace(co_filename=filename, co_consts=tuple(
        _renamed(constant, filename) if isinstance(constant, CodeType) else constant for constant in code.co_consts))


class TracedFunction(CompiledFunction):
    """A device function that is compiled to code which records its ops and computes no values.

    Args:
        emitter: an emitter that has generated all lines of the function.
        data: the data-dependent behaviour of the function.

    Attributes:
        data: the argument ``data``.
    """

    def __init__(self, emitter: PythonEmitter, data: DataUses) -> None:
        super().__init__(emitter)
        self.data = data


class BatchedFunction(CompiledFunction):
    """A device function that is compiled to code which computes many blocks at once.

    Args:
        emitter: an emitter that has generated all lines of the function.
        flow: the data flow of the function in on-chip memory.
        has_own: whether the scalar unit reads floats from memory, which differ between blocks (``per_block_scalars.py``).

    Attributes:
        flow, has_own: the arguments of the same name.
    """

    def __init__(self, emitter: PythonEmitter, flow: OnChipFlow, *, has_own: bool) -> None:
        super().__init__(emitter)
        self.flow, self.has_own = flow, has_own


def _failed_view(made: MadeArray, names: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the end of the message about an array that could not be created, and the advice."""
    shape = [size.value(names) for size in made.sizes]
    if min(shape, default=0) < 0:
        return (f"has an operand of {' x '.join(map(str, shape))} elements",
                "clamp the size of the tile to at least 0, or skip the work of this block")
    offset = made.offset.value(names) if all(names[size] for size in made.unless) else 0
    last = offset + sum((size - 1) * stride.value(names) for size, stride in zip(shape, made.strides, strict=True))
    return (f"touches bytes {offset}..{last + made.element - 1} of {made.called}, which has {names[made.memory].size} bytes",
            "check the offset and the size against the shape")
