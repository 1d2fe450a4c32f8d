"""The representation of SSA values in generated code: integers, scalar expressions, and memrefs with their NumPy arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from tilelang_npu.dialects.ir.remarks import Placed
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.linear import TRUTH, Interval
from tilelang_npu.simulator.codegen.code_scopes import CodeScope, Int, MadeArray, ScalarExpr, Sum
from tilelang_npu.simulator.codegen.definitions import WORD, Definitions
from tilelang_npu.simulator.codegen.handlers import Value, unsupported
from tilelang_npu.simulator.codegen.operand_checks import buffer_bytes_name, check_argument, is_inside_memory
from tilelang_npu.simulator.codegen.strided_views import (
    Base,
    Buffer,
    BufferNumbers,
    Choice,
    Cut,
    StridedView,
    bounds,
    called,
    element_of,
)
from tilelang_npu.simulator.machine.axis_bounds import check_read_start, check_slice
from tilelang_npu.target import Chip
from tilelang_npu.target.chip_data import CoreKind, Space


class SsaValues(Definitions, ABC):
    """Maps the SSA values of one device function to their representations in the generated code.

    Args:
        function: the function.
        core: ``AIC`` or ``AIV``.
        chip: the chip, which gives the memories, pipes and paths.
        parallel: the number of sub-blocks that run the function: the number of Vector cores of a block for the Vector function
            of a mixed kernel, otherwise 1.

    Attributes:
        values: the representation of each value that has been evaluated.
        extents: the number of bytes, from the start, that the function uses of each on-chip memory.
        open_ended: the on-chip memories with a view that is not known at compile time to lie inside its buffer.
        buffer_bytes: the variables that hold the bytes of single buffers. The key is the memory, the offset of the first byte,
            and the offset after the last byte.
        buffer_numbers: gives numbers to buffers that the planner has not numbered.
    """

    def __init__(self, function: FuncOp, core: CoreKind, chip: Chip, parallel: int) -> None:
        super().__init__()
        self.function = function
        self.core = core
        self.chip = chip
        self.parallel = parallel
        self.values: dict[SSAValue, Value] = {}
        self.extents: dict[Space, int] = {}
        self.open_ended: set[str] = set()
        self.buffer_bytes: dict[tuple[Base, tuple[int, int]], str] = {}
        self.buffer_numbers = BufferNumbers()
        self._who: dict[str, Int] = {}

    @abstractmethod
    def evaluate(self, op: Operation) -> Value | Sequence[Value]:
        """Returns the representations of the results of an op without effects."""

    def value(self, ssa: SSAValue) -> Value:
        """Returns the representation of an SSA value, and evaluates the op that defines it where this is not done yet."""
        found = self.values.get(ssa)
        if found is None:
            if isinstance(ssa, BlockArgument):
                found = self.values[ssa] = self.argument(ssa)
            else:
                assert isinstance(ssa, OpResult)
                found = self._evaluate(ssa)
        return found

    def _evaluate(self, ssa: OpResult) -> Value:
        op = ssa.op
        outer, self.current = self.current, op
        made = self.evaluate(op)
        self.current = outer
        results = made if isinstance(made, (list, tuple)) else (made,)
        for result, value in zip(op.results, results, strict=True):
            self.values[result] = value
        return self.values[ssa]

    def integer(self, ssa: SSAValue) -> Int:
        """Returns the representation of an SSA value that must be an integer or a truth value.

        Raises:
            TileError: T501, the value is neither an integer nor a truth value.
        """
        value = self.value(ssa)
        if isinstance(value, Int):
            return value
        if isinstance(value, ScalarExpr):  # a truth value that is used as an integer
            if value.value is not None:
                return Int(int(value.value))
            return self.define_integer(f"int({value.text})", value.scope, TRUTH)
        raise unsupported(self._owner(ssa), "an operand must be an integer and is not")

    def expression(self, ssa: SSAValue) -> ScalarExpr:
        """Returns the value of a scalar as an expression that consists of a name or a constant.

        Raises:
            TileError: T501, the value is not a scalar.
        """
        value = self.value(ssa)
        if isinstance(value, Int):
            return ScalarExpr(self.name_of(value), self.scope_of(value), value.constant if value.known else None)
        if isinstance(value, ScalarExpr):
            return value
        raise unsupported(self._owner(ssa), "an operand must be a scalar and is a memref")

    def buffer(self, ssa: SSAValue) -> Buffer:
        """Returns the representation of an SSA value that must be a memref in a device memory.

        Raises:
            TileError: T501, the value is no memref in a device memory.
        """
        value = self.value(ssa)
        if isinstance(value, (StridedView, Choice)):
            return value
        raise unsupported(self._owner(ssa), "an operand must be a memref in a device memory and is not",
                          "give the memref an address space and an address (hivm.hir.pointer_cast)")

    def _owner(self, ssa: SSAValue) -> Operation:
        if self.current is not None:
            return self.current
        owner = ssa.owner
        return owner if isinstance(owner, Operation) else self.function

    def argument(self, ssa: BlockArgument) -> Value:
        """Returns the representation of a kernel argument, and emits the line that reads it.

        Must not be called for arguments of inner MLIR blocks: the op that owns such a block adds them to ``values``.

        Raises:
            TileError: T503, a memref argument is in an on-chip memory.
        """
        index = ssa.index
        kind = ssa.type
        called = author_name(ssa, f"arg{index}")  # arbitrary text if the module comes from a file: it must not become code
        name = f"a{index}_{called}" if called.isidentifier() else f"a{index}"
        if isa(kind, MemRefType):
            element = element_of(kind)
            check_argument(self, kind, author_name(ssa, f"arg{index}"))
            self.launch.line(f"{name} = arrays[{index}]")
            shape = kind.get_shape()
            sizes = []
            for axis, size in enumerate(shape):
                if size >= 0:
                    sizes.append(Int(size))
                else:
                    self.launch.line(f"{name}_{axis} = dims[{index}][{axis}]")
                    sizes.append(self.atom(f"{name}_{axis}", self.launch, Interval(0, WORD)))
            known = element.nbytes * int(np.prod(shape)) if all(size >= 0 for size in shape) else None
            return StridedView(Base("gm", index, name, known, author_name(ssa)), element, Int(0), Int(0), tuple(sizes),
                               tuple(self.row_major(sizes, element.nbytes)))
        if isinstance(kind, (IndexType, IntegerType)):
            self.launch.line(f"{name} = scalars[{index}]")
            if isinstance(kind, IntegerType) and kind.width.data == 1:
                return ScalarExpr(name, self.launch)
            return self.atom(name, self.launch, bounds(kind) if isinstance(kind, IntegerType) else Interval(-WORD, WORD))
        self.launch.line(f"{name} = scalars[{index}]")
        return ScalarExpr(name, self.launch)

    def caller_value(self, name: str, scope: CodeScope, bounds: Interval) -> Int:
        """Returns an integer that the generated code has as a parameter, such as the block index.

        Args:
            name: the name of the parameter.
            scope: the outermost scope in which the integer is known.
            bounds: the least and the greatest value that it can have.
        """
        found = self._who.get(name)
        if found is None:
            found = self._who[name] = self.atom(name, scope, bounds)
        return found

    def on_chip(self, memory: Space, label: str, placed: Placed | None) -> Base:
        """Returns the on-chip memory in which a buffer lies, with the name and the number of the buffer.

        If the core has no such memory, the memory of the other kind of core of the block is returned; if the block has two
        Vector cores, that of the first one.

        Args:
            memory: the address space.
            label: the user's name of the buffer.
            placed: the remark of memory planning about the buffer's address; None if there is no such remark.
        """
        kind = self.chip.memory[memory].core
        holder = "" if kind == self.core else "AIC" if kind == "AIC" else "AIV0"
        owner = self.buffer_numbers.fresh() if placed is None else placed.number
        return Base(memory, 0, f"m_{memory}", self.chip.memory[memory].size, label, holder, owner,
                    placed is not None and not placed.pinned, "" if placed is None else placed.made_for)

    def array(self, buffer: Buffer, element: np.dtype[np.void] | None = None) -> str:
        """Returns the name of the NumPy array that views the bytes of a memref, and emits its creation.

        Args:
            buffer: the memref.
            element: the type that replaces the memref's element type; None for none.

        Raises:
            TileError: T502, the memref is known to exceed its buffer.
        """
        if isinstance(buffer, Choice):
            scope = self.scope_of(buffer)
            first, second = self.array(buffer.true, element), self.array(buffer.false, element)
            return self.define(f"{first} if {buffer.condition.text} else {second}", self.certain_scope(scope), "v")
        inside = is_inside_memory(self, buffer, element) and not buffer.cuts
        if element is None:
            kind = self.numpy_type(buffer.element)
        else:
            kind = f"t_{element.str.strip('|<>')}"
            self.globals[kind] = element
        sizes = tuple(self.sum_of(size) for size in buffer.sizes)
        place, strides = self.array_place(buffer, element)
        offset = place
        memory, begin = buffer.base.name, 0
        if not inside and buffer.base.memory != "gm":
            self.open_ended.add(buffer.base.memory)
        outer, gaps, shift = self.batch_axes_of(buffer)
        if shift:
            offset = f"{place} + {shift}"
        if not inside and buffer.limit is not None and not outer:
            memory, begin = buffer_bytes_name(self, buffer.base, buffer.limit), buffer.limit[0]
            offset = f"{place} - {begin}"
        for cut in buffer.cuts:
            if not cut.read:
                offset = f"{offset} + {self.check_slice(cut, buffer)}"
        # a tile that lies wholly beyond its tensor has no elements, and may have no valid address either
        empty = tuple(self.name_of(size) for size in buffer.sizes if not size.at_least(1))
        if empty:
            offset = f"({offset} if {' and '.join(empty)} else 0)"
        for cut in buffer.cuts:
            if cut.read:
                offset = f"{offset} + {self.check_slice(cut, buffer)}"
        text = f"nd({_tuple((*outer, *sizes))}, {kind}, {memory}, {offset}, {_tuple((*gaps, *strides))})"
        made = MadeArray(memory, called(buffer.base, whole=memory == buffer.base.name),
                         buffer.base.buffer if buffer.base.memory == "gm" else None, Sum(-begin, {place: 1}), sizes, strides,
                         (buffer.element.nbytes if element is None else element.itemsize), empty)
        scope = self.scope_of(buffer)
        return self.define(text, scope if inside else self.certain_scope(scope), "v", made)

    def array_place(self, view: StridedView, element: np.dtype[np.void] | None) -> tuple[str, tuple[Sum, ...]]:
        """Returns expressions of the byte offset and the byte strides of a view's array."""
        return self.name_of(view.offset), tuple(self.sum_of(stride) for stride in view.strides)

    def batch_axes_of(self, view: StridedView) -> tuple[tuple[Sum, ...], tuple[Sum, ...], str]:
        """Returns the batch axes of a view's array. This class has no batch axes; ``BatchedEmitter`` overrides the method.

        Returns:
            the sizes of the batch axes, their strides in bytes, and the name of a variable with the number of bytes that is
            added to the array's offset (an empty name if nothing is added).
        """
        return (), (), ""

    def check_slice(self, cut: Cut, view: StridedView) -> str:
        """Returns an expression that checks at run time that a slice lies inside its axis; its value is 0.

        Args:
            cut: the slice.
            view: the view that the slice creates; messages name the buffer of this view.
        """
        start, reach, extent = (self.name_of(number) for number in (cut.start, cut.reach or cut.start, cut.extent))
        name = called(view.base, whole=False)
        check = self.constant(check_read_start, "check_read_start") if cut.read else self.constant(check_slice, "check_slice")
        return f"{check}({start}, {reach}, {extent}, {cut.axis!r}, {name!r})"

    def current_op(self) -> Operation:
        """Returns the op for which code is being generated; between ops, the device function."""
        return self.current if self.current is not None else self.function


def _tuple(parts: Sequence[Sum]) -> str:
    return f"({', '.join(part.text for part in parts)}{',' if len(parts) == 1 else ''})"
