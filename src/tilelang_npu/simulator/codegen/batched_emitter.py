"""Generates code that runs many blocks of a launch at once: each array has two leading batch axes, which enumerate the blocks.

The blocks of a launch execute the same ops on different tiles. Instead of one small NumPy or BLAS call per block, this code
makes one call for all blocks: fewer Python steps, and longer calls during which other threads can run. The code records no
events, and computes integers for the first block alone. A trace, which runs before, decides which blocks run in one batch and
how far apart their offsets in GM are (``run/batched_execution.py``). A float that the scalar unit reads from memory becomes an
array with one number per block, if it is only used in float arithmetic and stored (``per_block_scalars.py``). No batched code
is generated for a function that uses numbers from memory in any other way.

A statement either computes all blocks at once (``emit_batched``), or runs for one block after the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
from xdsl.dialects import memref, scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.simulator.codegen.code_scopes import Int, Line, Sum
from tilelang_npu.simulator.codegen.definitions import WORD
from tilelang_npu.simulator.codegen.op_recorder import Costing, Operand
from tilelang_npu.simulator.codegen.per_block_scalars import UnbatchableFunctionError, find_per_block_scalars
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.strided_views import Buffer, StridedView, alternatives
from tilelang_npu.simulator.machine.batch_layout import ArrayPlace, OnChipFlow, panels_of
from tilelang_npu.simulator.machine.op_records import OpRecord
from tilelang_npu.target import Chip, is_fractal
from tilelang_npu.target.chip_data import CoreKind, PipeName

_WORDS = re.compile(r"[A-Za-z_]\w*")


class BatchedEmitter(PythonEmitter):
    """Generates Python source for one device function that runs all blocks of a batch at once.

    Args:
        flow: an empty object, to which the emitter adds the data flow of the function in on-chip memory.
        function, core, chip, parallel: as for ``PythonEmitter``.

    Raises:
        UnbatchableFunctionError: no such source can be generated, because the function has a ``while`` loop or prints, or uses
            a number from memory where one value for all blocks is needed, such as in an address or a trip count. The methods
            also raise this error.
    """

    batch_axes = 2

    def __init__(self, flow: OnChipFlow, function: FuncOp, core: CoreKind, chip: Chip, parallel: int) -> None:
        super().__init__(function, core, chip, parallel)
        if any(isinstance(op, (scf.WhileOp, hivm.DebugOp)) for op in function.walk()):
            raise UnbatchableFunctionError
        self._flow = flow
        self._own = find_per_block_scalars(function)
        self._loaded: dict[Operation, tuple[set[int], set[int]]] = {}
        self._awaited: dict[Operation, list[tuple[set[int], set[int]]]] = {}
        self._operands = 0
        self._here: dict[tuple[str, str], tuple[int, bool]] = {}
        self._arrays: set[str] = set()
        self._places: dict[tuple[int, ArrayPlace], int] = {}
        self._body: list[str] | None = None

    def record(self, op: Operation, pipe: PipeName | Literal[""], operands: Sequence[Operand], work: Costing) -> OpRecord:
        """Records an op and its data flow in on-chip memory.

        The op's handler then emits statements: those emitted by ``line`` run once per block, and those emitted by
        ``emit_batched`` run once for all blocks.
        """
        self.finish_op()
        made = super().record(op, pipe, operands, work)
        self._here = {}
        gm: set[int] = set()
        parts: set[int] = set()
        for operand in operands:
            views = alternatives(operand.buffer)
            if views[0].base.memory == "gm":
                here = self._operands, operand.writes
                self._here.update(((view.base.name, self.name_of(view.offset)), here) for view in views)
                if operand.reads:
                    gm.add(self._operands)
                self._operands += 1
            elif operand.reads:
                parts.update(map(self._part, views))
        if isinstance(op, memref.StoreOp):
            self._stored(op.value, gm, parts)
        elif isinstance(op, memref.LoadOp):
            self._loaded[op] = gm, parts
            for waiting in self._awaited.pop(op, ()):
                _extend(waiting, (gm, parts))
        self._flow.writes += [(self._part(view), gm, parts) for operand in operands if operand.writes
                              for view in alternatives(operand.buffer) if view.base.memory != "gm"]
        self._body = []
        return made

    def _stored(self, value: SSAValue, gm: set[int], parts: set[int]) -> None:
        """Adds the data sources of a scalar that an op stores to the given sets.

        Args:
            value: the scalar. If it comes from a load that is emitted later (through a loop), the load's sources are added when
                the load is emitted.
            gm: the set of the numbers of GM operands.
            parts: the set of the numbers of parts of on-chip memory.
        """
        for load in self._own.get(value, ()):
            if load in self._loaded:
                _extend((gm, parts), self._loaded[load])
            else:
                self._awaited.setdefault(load, []).append((gm, parts))

    def is_per_block(self) -> bool:
        """Whether the current op's result is a scalar that differs between blocks: an array with one number per block."""
        return self.current is not None and any(result in self._own for result in self.current.results)

    def _part(self, view: StridedView) -> int:
        """Returns the number of the part of on-chip memory (see :class:`OnChipFlow`) that a view covers."""
        if view.base.holder:
            self._flow.foreign.add(view.base.memory)
        return self._flow.part(view.base.memory, *_stretch(view))

    def batch_axes_of(self, view: StridedView) -> tuple[tuple[Sum, ...], tuple[Sum, ...], str]:
        """Returns the batch axes of a view's array, as expressions that are evaluated once per launch.

        Returns:
            the sizes of the two batch axes, their strides in bytes, and the name of a number of bytes that is added to the
            array's offset; the name is empty in GM.

        Raises:
            UnbatchableFunctionError: the view is in GM, and is not an operand of the op that is being emitted.
        """
        on_chip = view.base.memory != "gm"
        if not on_chip:
            here = self._here.get((view.base.name, self.name_of(view.offset)))
            if here is None:
                raise UnbatchableFunctionError
            number, written = here
            front = f"layout.in_gm({number}, written={written})"
        else:
            fronts = self.define(f"layout.on_chip({self.constant(self._flow, 'flow')}, {view.base.memory!r})", self.launch)
            front = f"{fronts}[{self._part(view)}]"
        name = self.define(front, self.launch)
        parts = [Sum(0, {self.define(f"{name}[{place}]", self.launch): 1}) for place in range(4)]
        shift = self.define(f"{name}[4]", self.launch) if on_chip else ""
        return tuple(parts[:2]), tuple(parts[2:]), shift

    def array_place(self, view: StridedView, element: np.dtype[np.void] | None) -> tuple[str, tuple[Sum, ...]]:
        """Returns expressions of the byte offset and byte strides of a view's array.

        For a view of a fractal matrix, the launch computes them, because the matrix is possibly stored row by row.
        """
        if not is_fractal(view.base.memory):
            return super().array_place(view, element)
        part = self._part(view)
        if not view.offset.known or not all(stride.known for stride in view.strides):
            self._flow.places.append((part, None))
            return super().array_place(view, element)
        place = ArrayPlace(view.offset.constant, tuple(size.interval.high for size in view.sizes),
                           tuple(stride.constant for stride in view.strides),
                           view.element.nbytes if element is None else element.itemsize)
        number = self._places.setdefault((part, place), len(self._flow.places))
        if number == len(self._flow.places):
            self._flow.places.append((part, place))
        name = self.define(f"layout.place({self.constant(self._flow, 'flow')}, {number})", self.launch)
        offset, *strides = (self.define(f"{name}[{at}]", self.launch) for at in range(len(place.strides) + 1))
        return offset, tuple(Sum(0, {stride: 1}) for stride in strides)

    def note_product_operands(self, *buffers: Buffer, rows: bool) -> None:
        """Adds the operands of a matrix product to ``OnChipFlow.matrices``, each with its fractal layout.

        Args:
            buffers: the operands.
            rows: whether the product allows operands that are stored row by row; if not, None is added in place of each layout.
        """
        for view in (view for buffer in buffers for view in alternatives(buffer)):
            part, panels = self._part(view), None
            if rows and view.static and view.shape is not None:
                _, low, high = list(self._flow.parts)[part]
                strides = tuple(stride.constant for stride in view.strides)
                panels = panels_of(ArrayPlace(view.offset.constant, view.shape, strides, view.element.nbytes), low, high)
            self._flow.matrices.append((part, panels))

    def array(self, buffer: Buffer, element: np.dtype[np.void] | None = None) -> str:
        """Returns the name of the array that contains a memref's elements in all blocks of the batch."""
        name = super().array(buffer, element)
        self._arrays.add(name)
        return name

    def line(self, text: str, op: Operation | None = None) -> None:
        """Emits a statement. Between ``record`` and ``finish_op`` it runs once per block, otherwise once for all blocks."""
        if self._body is None:
            super().line(text, op)
        else:
            self._body.append(text)

    def emit_batched(self, text: str, *buffers: Buffer) -> None:
        """Emits a statement that runs once for all blocks; once per block, if ``buffers`` have different ranks."""
        if len({buffer.rank for buffer in buffers}) > 1:
            self.line(text)
            return
        self._write_body()
        self.scope.line(text, self.current)

    def emit_print(self, text: str) -> None:
        """Raises ``UnbatchableFunctionError``: blocks that run at once would print in another order."""
        raise UnbatchableFunctionError

    def emit_scalar_read(self, name: str, element: str) -> None:
        """Emits the assignment of an array with one number per block, converted to float64, to the variable ``name``.

        Raises:
            UnbatchableFunctionError: the current op is not a ``memref.load``.
        """
        if not isinstance(self.current, memref.LoadOp):
            raise UnbatchableFunctionError
        self.emit_batched(f"{name} = {element}.astype(float)")

    def core_text(self) -> str:
        """Returns ``None``: the code runs several cores."""
        return "None"

    def emit_card_wait(self, record: OpRecord, wait: str, op: Operation) -> None:
        """Raises ``UnbatchableFunctionError``: blocks that wait for other cards run concurrently."""
        raise UnbatchableFunctionError

    def emit_flag_set(self, flag: Int, group: str, op: Operation) -> None:
        """Emits one statement that sets a flag between cores for all blocks of the batch."""
        self.finish_op()
        super().emit_flag_set(flag, group, op)

    def emit_flag_wait(self, record: OpRecord, flag: Int, op: Operation) -> None:
        """Emits one loop that waits for a flag between cores for all blocks of the batch."""
        self.finish_op()
        super().emit_flag_wait(record, flag, op)

    def flush(self) -> None:
        """Discards the pending events and GM offsets: batched code does not record them."""
        self._events, self._gm = [], []

    def finish_op(self) -> None:
        """Emits the collected statements of the current op, to run once per block; later statements run once for all blocks."""
        self._write_body()
        self._body, self._here = None, {}

    def _write_body(self) -> None:
        """Emits the collected statements as a function of the arrays that they use, and a call of it for each block."""
        if not self._body:
            return
        names = sorted(self._arrays & {word for text in self._body for word in _WORDS.findall(text)})
        indent = self.scope.indent
        if names:
            function, given = self.fresh("f"), "".join(f"{name}, " for name in names)
            self.scope.line(f"def {function}({given}):", self.current)
            indent += 1
        for text in self._body:
            self.scope.lines.append(Line(indent, text, self.current))
        if names:
            self.scope.line(f"layout.each({function}, ({given}))", self.current)
        self._body = []


def _extend(sources: tuple[set[int], set[int]], more: tuple[set[int], set[int]]) -> None:
    for one, other in zip(sources, more, strict=True):
        one |= other


def _stretch(view: StridedView) -> tuple[int, int]:
    """Returns the offset of a view's first byte and of the byte after its last one in the memory.

    If they are not constant, the result is the range of the view's buffer, or of the whole memory if the buffer is not known.
    """
    if view.static and view.shape is not None and all(stride.constant >= 0 for stride in view.strides):
        first, steps = view.offset.constant, zip(view.shape, view.strides, strict=True)
        return first, first + sum(max(size - 1, 0) * stride.constant for size, stride in steps) + view.element.nbytes
    return view.limit or (0, WORD)
