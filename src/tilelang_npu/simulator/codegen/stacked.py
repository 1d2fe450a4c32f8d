"""Code that runs many blocks at once: every array has two axes in front, along which the blocks lie.

A launch's blocks do the same to different tiles. What NumPy or BLAS would be asked for once for each block, with little to do
every time, this code asks for once: that costs Python less, and leaves other threads the interpreter meanwhile. It records
nothing, and takes its integers from the first of the blocks: which blocks may run so, and how their places in GM lie, is known
from a trace (``run/stacks.py``). A float that the scalar unit reads is an array as well, where nothing follows from it but what
is stored (``own_numbers``); a function that takes other numbers from memory has no such code.

What an op does is either said once for all axes (``over``), or done for one block after the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from xdsl.dialects import memref, scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.simulator.codegen.definitions import WORD
from tilelang_npu.simulator.codegen.lines import Int, Line, Sum
from tilelang_npu.simulator.codegen.own_numbers import ApartError, own_numbers
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.records import Costing, Operand
from tilelang_npu.simulator.codegen.strided import Buffer, StridedView, alternatives
from tilelang_npu.simulator.machine.events import OpRecord
from tilelang_npu.simulator.machine.layout import ArrayPlace, panels_of
from tilelang_npu.simulator.machine.stack import Flow
from tilelang_npu.target import Chip, is_fractal

_WORDS = re.compile(r"[A-Za-z_]\w*")


class StackedEmitter(PythonEmitter):
    """As ``PythonEmitter``, for code that runs the blocks of a :class:`Stack`.

    Args:
        flow: what is to be told of where numbers come from.
        function, core, chip, parallel: as for ``PythonEmitter``.

    Raises:
        ApartError: it takes numbers from memory that need not be the same for all, or shows some.
    """

    axes_in_front = 2

    def __init__(self, flow: Flow, function: FuncOp, core: str, chip: Chip, parallel: int) -> None:
        super().__init__(function, core, chip, parallel)
        if any(isinstance(op, (scf.WhileOp, hivm.DebugOp)) for op in function.walk()):
            raise ApartError
        self._flow = flow
        self._own = own_numbers(function)
        self._loaded: dict[Operation, tuple[set[int], set[int]]] = {}
        self._awaited: dict[Operation, list[tuple[set[int], set[int]]]] = {}
        self._operands = 0
        self._here: dict[tuple[str, str], tuple[int, bool]] = {}
        self._arrays: set[str] = set()
        self._places: dict[tuple[int, ArrayPlace], int] = {}
        self._body: list[str] | None = None

    def record(self, op: Operation, pipe: str, operands: Sequence[Operand], work: Costing) -> OpRecord:
        """Note which operands in GM the op has; what its handler then writes is done for each block."""
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
        """Add what a scalar that is stored comes from; of loads that stand behind the store in a loop when they come."""
        for load in self._own.get(value, ()):
            if load in self._loaded:
                _extend((gm, parts), self._loaded[load])
            else:
                self._awaited.setdefault(load, []).append((gm, parts))

    def is_own(self) -> bool:
        """Whether the number is one that blocks have for themselves."""
        return self.current is not None and any(result in self._own for result in self.current.results)

    def _part(self, view: StridedView) -> int:
        """The part of a memory on chip that a view lies in."""
        if view.base.holder:
            self._flow.foreign.add(view.base.memory)
        return self._flow.part(view.base.memory, *_stretch(view))

    def in_front(self, view: StridedView) -> tuple[tuple[Sum, ...], tuple[Sum, ...], str]:
        """The axes along which the blocks lie."""
        on_chip = view.base.memory != "gm"
        if not on_chip:
            here = self._here.get((view.base.name, self.name_of(view.offset)))
            if here is None:
                raise ApartError
            number, written = here
            front = f"stack.in_gm({number}, written={written})"
        else:
            fronts = self.define(f"stack.on_chip({self.constant(self._flow, 'flow')}, {view.base.memory!r})", self.launch)
            front = f"{fronts}[{self._part(view)}]"
        name = self.define(front, self.launch)
        parts = [Sum(0, {self.define(f"{name}[{place}]", self.launch): 1}) for place in range(4)]
        shift = self.define(f"{name}[4]", self.launch) if on_chip else ""
        return tuple(parts[:2]), tuple(parts[2:]), shift

    def laid(self, view: StridedView, element: np.dtype[np.void] | None) -> tuple[str, tuple[Sum, ...]]:
        """Where the array over a memref begins, and its strides: over a matrix the rows may lie whole."""
        if not is_fractal(view.base.memory):
            return super().laid(view, element)
        part = self._part(view)
        if not view.offset.known or not all(stride.known for stride in view.strides):
            self._flow.places.append((part, None))
            return super().laid(view, element)
        place = ArrayPlace(view.offset.constant, tuple(size.interval.high for size in view.sizes),
                      tuple(stride.constant for stride in view.strides),
                      view.element.nbytes if element is None else element.itemsize)
        number = self._places.setdefault((part, place), len(self._flow.places))
        if number == len(self._flow.places):
            self._flow.places.append((part, place))
        name = self.define(f"stack.place({self.constant(self._flow, 'flow')}, {number})", self.launch)
        offset, *strides = (self.define(f"{name}[{at}]", self.launch) for at in range(len(place.strides) + 1))
        return offset, tuple(Sum(0, {stride: 1}) for stride in strides)

    def multiplied_by_rows(self, *buffers: Buffer, rows: bool) -> None:
        """Tell the flow of the matrices of a product."""
        for view in (view for buffer in buffers for view in alternatives(buffer)):
            part, panels = self._part(view), None
            if rows and view.static and view.shape is not None:
                _, low, high = list(self._flow.parts)[part]
                strides = tuple(stride.constant for stride in view.strides)
                panels = panels_of(ArrayPlace(view.offset.constant, view.shape, strides, view.element.nbytes), low, high)
            self._flow.matrices.append((part, panels))

    def array(self, buffer: Buffer, element: np.dtype[np.void] | None = None) -> str:
        """The name of the array over a memref of all blocks."""
        name = super().array(buffer, element)
        self._arrays.add(name)
        return name

    def line(self, text: str, op: Operation | None = None) -> None:
        """A statement: of the op that was recorded, for each block, or of the scalar unit."""
        if self._body is None:
            super().line(text, op)
        else:
            self._body.append(text)

    def over(self, text: str, *buffers: Buffer) -> None:
        """A statement for all blocks."""
        if len({buffer.rank for buffer in buffers}) > 1:
            self.line(text)
            return
        self._write_body()
        self.scope.line(text, self.current)

    def shown(self, text: str) -> None:
        """What is printed comes block by block."""
        raise ApartError

    def read(self, name: str, element: str) -> None:
        """Each block has a number of its own."""
        if not isinstance(self.current, memref.LoadOp):
            raise ApartError
        self.over(f"{name} = {element}.astype(float)")

    def leave_flag(self, flag: Int, group: str, op: Operation) -> None:
        """The blocks set a flag together."""
        self.finish_op()
        super().leave_flag(flag, group, op)

    def take_flag(self, record: OpRecord, flag: Int, op: Operation) -> None:
        """The blocks wait for a flag together."""
        self.finish_op()
        super().take_flag(record, flag, op)

    def flush(self) -> None:
        """Nothing is recorded."""
        self._events, self._gm = [], []

    def finish_op(self) -> None:
        """What is done for each block is complete."""
        self._write_body()
        self._body, self._here = None, {}

    def _write_body(self) -> None:
        """Write what is done for each block: a function of its arrays, and its calls."""
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
            self.scope.line(f"stack.each({function}, ({given}))", self.current)
        self._body = []


def _extend(sources: tuple[set[int], set[int]], more: tuple[set[int], set[int]]) -> None:
    for one, other in zip(sources, more, strict=True):
        one |= other


def _stretch(view: StridedView) -> tuple[int, int]:
    """The first byte of a view, and the one behind its last, as far as they are known: it lies between them."""
    if view.static and view.shape is not None and all(stride.constant >= 0 for stride in view.strides):
        first, steps = view.offset.constant, zip(view.shape, view.strides, strict=True)
        return first, first + sum(max(size - 1, 0) * stride.constant for size, stride in steps) + view.element.nbytes
    return view.limit or (0, WORD)
