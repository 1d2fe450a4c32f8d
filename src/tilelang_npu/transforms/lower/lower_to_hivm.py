"""Lower a kernel from the tile dialect to HIVM: one MIX, AIC or AIV function with memories known, nothing planned yet.

The result is the stage ``hivm-auto``, the form that is handed to the vendor's compiler, which splits, plans and
synchronises it: allocations are ``memref.alloc``, matrices in L1 and L0C have the zN layout, hand-overs between the
cores go through ``memref_ext.alloc_workspace``. Tiles are clipped against their tensors unless bounds prove that they
lie inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    Signedness,
    StridedLayoutAttr,
    UnitAttr,
    UnrealizedConversionCastOp,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu import target as chips
from tilelang_npu.dialects import annotation, hacc, hivm, memref_ext, tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.text.names import escape_name
from tilelang_npu.ops import DType
from tilelang_npu.transforms.ir.buffers import SCRATCH, root_of, space_of
from tilelang_npu.transforms.ir.cores import forget_core
from tilelang_npu.transforms.ir.emit import OpBuilder, Value
from tilelang_npu.transforms.ir.locations import refuse
from tilelang_npu.transforms.ir.ranges import is_read
from tilelang_npu.transforms.ir.whole_blocks import is_paddable, places_of, units_differ
from tilelang_npu.transforms.lower.calls import (
    lower_cache,
    lower_call,
    lower_dump,
    lower_print,
    lower_printf,
)
from tilelang_npu.transforms.lower.compute import (
    lower_broadcast,
    lower_elementwise,
    lower_fill,
    lower_gemm,
    lower_reduce,
)
from tilelang_npu.transforms.lower.copies import lower_copy
from tilelang_npu.transforms.lower.launch import (
    KernelShape,
    begin_function,
    check_cores,
    finish_function,
    shape_of_kernel,
    shaped_argument,
)
from tilelang_npu.transforms.lower.said import say_core
from tilelang_npu.transforms.lower.views import LoweredBuffer, View, first_element, fractal_shape, reshaped, whole

ADDRESS = "tile.address"  # attribute of memref.alloc: the byte address that the user fixed; gone after planning


def _allocation(value: SSAValue) -> Operation:
    """The allocation of a buffer: the code of a kernel sees it narrowed to its shape, or bytes as its elements."""
    owner = value.owner
    if isinstance(owner, (memref.SubviewOp, memref.ViewOp)):
        owner = owner.source.owner
    assert isinstance(owner, (memref.AllocOp, memref_ext.AllocWorkspaceOp))
    return owner


def _sign(kind: Attribute) -> Signedness:
    """Returns the signedness of an integer type; SIGNLESS for every other type."""
    return kind.signedness.data if isinstance(kind, IntegerType) else Signedness.SIGNLESS


class KernelLowering:
    """State of lowering one kernel; ``by_hand``: its author sets the waits between statements."""

    def __init__(self, kernel: func.FuncOp, shape: KernelShape, chip: chips.Chip, *, by_hand: bool):
        self.kernel = kernel
        self.shape = shape
        self.chip = chip
        self.by_hand = by_hand
        self.values: dict[SSAValue, SSAValue] = {}
        self.views: dict[SSAValue, View] = {}
        self.padded = _row_wise_buffers(kernel)
        self.in_bytes = _buffers_of_several_widths(kernel)
        self.emit: OpBuilder

    def run(self) -> func.FuncOp:
        """The lowered function."""
        made, self.emit = begin_function(self)
        self._block(self.kernel.body.block)
        finish_function(self, made)
        return made

    def view(self, value: SSAValue) -> View:
        """What a tile operand means, as a view of a lowered buffer."""
        return self.views[value]

    def type_of(self, kind: DType) -> Attribute:
        """The MLIR type of an element type."""
        return _SCALARS[kind.mlir]

    def scalar(self, value: SSAValue | float, element: Attribute) -> SSAValue:
        """A scalar as a value of an element type; conversions follow the type's meaning (ints truncate, floats
        round).
        """
        if not isinstance(value, SSAValue):
            return self.emit.constant(value, element)
        if value.type == element:
            return value
        owner = value.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, (IntegerAttr, FloatAttr)):
            return self.emit.constant(owner.value.value.data, element)
        return self._converted(value, element)

    def _converted(self, value: SSAValue, element: Attribute, *, unsigned: bool = False) -> SSAValue:
        emit, kind = self.emit, value.type
        if isinstance(kind, IndexType):
            return self._converted(emit.insert(arith.IndexCastOp(value, IntegerType(32))).result, element)
        if kind == element:
            return value
        if _sign(kind) is not Signedness.SIGNLESS:
            return self._converted(self._signless(value), element, unsigned=_sign(kind) is Signedness.UNSIGNED)
        if isinstance(element, IntegerType) and _sign(element) is not Signedness.SIGNLESS:
            plain = IntegerType(element.width)
            from_float = not isinstance(kind, IntegerType) and _sign(element) is Signedness.UNSIGNED
            bits: SSAValue = (emit.insert(arith.FPToUIOp(value, plain)).result if from_float
                              else self._converted(value, plain, unsigned=unsigned))
            made: SSAValue = emit.insert(UnrealizedConversionCastOp.get([bits], [element])).results[0]
            return made
        if isinstance(kind, IntegerType) and isinstance(element, IntegerType):
            wider = element.width.data > kind.width.data
            extend = arith.ExtUIOp if unsigned else arith.ExtSIOp
            return emit.insert((extend if wider else arith.TruncIOp)(value, element)).result
        if isinstance(kind, IntegerType):
            to_float = arith.UIToFPOp if unsigned else arith.SIToFPOp
            return emit.insert(to_float(value, element)).result  # type: ignore[arg-type]  # a float type here
        if isinstance(element, IntegerType):
            return emit.insert(arith.FPToSIOp(value, element)).result
        wider = dtype_of(element).bits > dtype_of(kind).bits
        return emit.insert((arith.ExtFOp if wider else arith.TruncFOp)(value, element)).result

    def _signless(self, value: SSAValue) -> SSAValue:
        """Returns a signed or unsigned integer as a signless one: ``arith`` has no operations on the others."""
        assert isinstance(value.type, IntegerType)
        plain = IntegerType(value.type.width)
        if isinstance(value.owner, UnrealizedConversionCastOp) and value.owner.inputs[0].type == plain:
            return value.owner.inputs[0]
        made: SSAValue = self.emit.insert(UnrealizedConversionCastOp.get([value], [plain])).results[0]
        return made

    def scratch(self, like: View, element: Attribute) -> View:
        """A temporary tile in UB with the shape of a view and another element type."""
        sizes: list[int] = []
        for axis, size in zip(like.axes, like.shape, strict=True):
            bound = size if isinstance(size, int) or axis is None else like.buffer.shape[axis]
            sizes.append(bound if isinstance(bound, int) else 1)
        buffer = self.allocate("scratch", sizes, element, "ub", pad=True)
        _allocation(buffer.value).attributes[SCRATCH] = UnitAttr()
        made = whole(buffer)
        return made if made.shape == like.shape else made.resized(like.shape)

    def allocate(self, label: str, shape: list[int], element: Attribute, space: str, *, pad: bool) -> LoweredBuffer:
        """Emit an allocation; matrices of L1 and L0C get fractals, rows in UB that a DMA takes one by one get whole
        blocks.
        """
        emit, memory = self.emit, hivm.address_space(space)
        kind = dtype_of(element)
        if space == "gm":
            ring = emit.insert(memref_ext.AllocWorkspaceOp(MemRefType(element, shape, memory_space=memory)))
            ring.results[0].name_hint = escape_name(label)
            return LoweredBuffer(ring.results[0], space, tuple(shape), label)
        if chips.is_fractal(space) and len(shape) >= 2:
            physical = *shape[:-2], *fractal_shape(shape[-2], shape[-1], kind, accumulator=space == "cc")
            made = emit.insert(memref.AllocOp([], [], MemRefType(element, physical, memory_space=memory)))
        else:
            pitch = -(-shape[-1] * kind.nbytes // chips.BLOCK) * chips.BLOCK // kind.nbytes
            wide = pad and len(shape) > 1 and pitch != shape[-1]
            physical_nd = [*shape[:-1], pitch] if wide else shape
            made = emit.insert(memref.AllocOp([], [], MemRefType(element, physical_nd, memory_space=memory)))
            if wide:
                made.memref.name_hint = escape_name(label)
                return LoweredBuffer(self._narrow(made, shape, element, memory), space, tuple(shape), label)
        made.results[0].name_hint = escape_name(label)
        return LoweredBuffer(made.results[0], space, tuple(shape), label)

    def _narrow(self, made: memref.AllocOp, shape: list[int], element: Attribute, memory: Attribute) -> SSAValue:
        assert isinstance(made.memref.type, MemRefType)
        strides = list(made.memref.type.get_strides() or [])
        kind = MemRefType(element, shape, StridedLayoutAttr(strides, 0), memory)
        zeros, ones = [0] * len(shape), [1] * len(shape)
        narrow = self.emit.insert(memref.SubviewOp.get(made.memref, zeros, shape, ones, kind)).result
        narrow.name_hint = made.memref.name_hint
        return narrow

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self.emit.location = op.location
            handler = _handler(type(op))
            if handler is not None:
                handler(self, op)
            else:
                self._clone(op)

    def _clone(self, op: Operation) -> None:
        if op.regions or any(isinstance(operand.type, MemRefType) for operand in op.operands):
            raise refuse(op, f"{op.name} has no lowering to HIVM", "T290")
        made = self.emit.insert(op.clone(value_mapper=dict(self.values)))
        forget_core(made)
        self._bind(op, made)

    def _bind(self, old: Operation, new: Operation) -> None:
        for before, after in zip(old.results, new.results, strict=True):
            self.values[before] = after
            after.name_hint = before.name_hint

    def _inner(self, region: Region, arguments: list[Attribute]) -> Region:
        source = region.block
        block = Block(arg_types=arguments)
        for before, after in zip(source.args, block.args, strict=True):
            self.values[before] = after
            after.name_hint = before.name_hint
        with self.emit.inside(block):
            self._block(source)
        return Region(block)

    def _for(self, op: scf.ForOp) -> None:
        bounds = [self.values[v] for v in (op.lb, op.ub, op.step)]
        carried = [self.values[v] for v in op.iter_args]
        location = op.location
        body = Block(arg_types=[arg.type for arg in op.body.block.args])
        made = scf.ForOp(bounds[0], bounds[1], bounds[2], carried, Region(body))
        self.emit.location = location
        self.emit.insert(made)
        made.attributes.update(op.attributes)
        forget_core(made)
        for before, after in zip(op.body.block.args, body.args, strict=True):
            self.values[before] = after
            after.name_hint = before.name_hint
        with self.emit.inside(body):
            self._block(op.body.block)
        self._bind(op, made)

    def _if(self, op: scf.IfOp) -> None:
        with self.emit.where(self.values[op.cond]):
            then = self._inner(op.true_region, [])
        other = self._inner(op.false_region, []) if op.false_region.blocks else Region()
        self.emit.location = op.location
        made = scf.IfOp(self.values[op.cond], [r.type for r in op.results], then, other)
        self.emit.insert(made)
        self._bind(op, made)

    def _while(self, op: scf.WhileOp) -> None:
        carried = [self.values[v] for v in op.arguments]
        before = self._inner(op.before_region, [a.type for a in op.before_region.block.args])
        after = self._inner(op.after_region, [a.type for a in op.after_region.block.args])
        self.emit.location = op.location
        made = scf.WhileOp(carried, [r.type for r in op.results], before, after)
        self.emit.insert(made)
        self._bind(op, made)

    def _on_core(self, op: tile.OnCoreOp) -> None:
        block = self.emit.point.block
        last = block.last_op
        self._block(op.body.block)
        made = block.first_op if last is None else last.next_op
        while made is not None:
            say_core(made, "AIC" if op.core.data == "cube" else "AIV", self.chip)
            made = made.next_op

    def _cross_set(self, op: hivm.SyncBlockSetOp) -> None:
        """A flag that the user sets needs the base address of the flags."""
        flag = op.flag_id()
        made = self.emit.insert(hivm.SyncBlockSetOp(
            op.tcore_type, op.tpipe, op.pipe, flag if isinstance(flag, int) else self.values[flag],
            ffts=self.emit.entry.args[0], mode=op.tsync_instr_mode.data))
        made.attributes.update(op.attributes)
        forget_core(made)

    def _barrier_of_cores(self, op: hivm.SyncBlockOp) -> None:
        """In a kernel of one kind of core, all cores are those of this kind."""
        kind = {"AIC": "cube", "AIV": "vector"}.get(self.shape.cores)
        mode = op.sync_block_mode.data
        made = self.emit.insert(hivm.barrier_of_cores(kind) if mode == "ALL" and kind is not None else op.clone())
        forget_core(made)

    def _alloc(self, op: tile.AllocOp) -> None:
        kind, space = op.result.type, space_of(op.result)
        assert isinstance(kind, MemRefType)
        if space in ("shared", "fragment"):
            raise refuse(op, f"{op.label.data} has no memory yet; run infer-scopes first", "T291")
        shape = list(kind.get_shape())
        if op.result in self.in_bytes and space == "ub":
            self.views[op.result] = whole(self._allocate_bytes(op, kind))
            self._mark(op, _allocation(self.views[op.result].buffer.value))
            return
        if space == "local":
            made = self.emit.insert(memref.AllocaOp.get(kind.element_type, shape=shape))
            self.views[op.result] = whole(LoweredBuffer(made.results[0], "local", tuple(shape), op.label.data))
            return
        pad = root_of(op.result) in self.padded
        buffer = self.allocate(op.label.data, shape, kind.element_type, space, pad=pad)
        self._mark(op, _allocation(buffer.value))
        self.views[op.result] = whole(buffer)

    def _allocate_bytes(self, op: tile.AllocOp, kind: MemRefType[Attribute]) -> LoweredBuffer:
        """Allocate a buffer as bytes, and see them as its elements: views of another element width see the same bytes."""
        emit, label = self.emit, op.label.data
        shape, element = tuple(kind.get_shape()), kind.element_type
        count = math.prod(shape) * dtype_of(element).nbytes
        made = emit.insert(memref.AllocOp([], [], MemRefType(IntegerType(8), [count], memory_space=kind.memory_space)))
        made.memref.name_hint = escape_name(label)
        return self._elements(LoweredBuffer(made.memref, "ub", shape, label, bytes=made.memref), element, shape)

    def _elements(self, buffer: LoweredBuffer, element: Attribute, shape: tuple[int, ...]) -> LoweredBuffer:
        """Elements of a type, one after another, in the bytes of a buffer from its shift on."""
        source = buffer.bytes
        assert source is not None and isinstance(source.type, MemRefType)
        kind = MemRefType(element, shape, memory_space=source.type.memory_space)
        made = self.emit.insert(memref.ViewOp(source, self.emit.value(buffer.shift), [], kind)).results[0]
        made.name_hint = escape_name(buffer.label)
        return replace(buffer, value=made, shape=shape, start=0)

    def _mark(self, op: tile.AllocOp, owner: Operation) -> None:
        """Give an allocation the address, the slots and the role that the buffer has."""
        if op.address is not None:
            owner.attributes[ADDRESS] = op.address
        if SCRATCH in op.attributes:
            owner.attributes[SCRATCH] = UnitAttr()
        if op.slots is not None:
            mark = self.emit.insert(annotation.MarkOp(owner.results[0]))
            mark.attributes["hivm.multi_buffer"] = IntegerAttr(op.slots.value.data, 32)

    def _region(self, op: tile.RegionOp) -> None:
        base = self.view(op.source)
        offsets, sizes = list(base.offsets), list(base.sizes)
        for axis, offset, size in zip(base.axes, op.mixed_offsets(), op.mixed_sizes(), strict=True):
            new_size = self._mapped(size)
            if axis is not None:
                offsets[axis] = self.emit.add(offsets[axis], self._mapped(offset))
                full = isinstance(base.buffer.shape[axis], SSAValue) and self._is_dimension(size, op.source, axis)
                sizes[axis] = base.buffer.shape[axis] if full else new_size
        axes = tuple(base.axes[axis] for axis in op.kept.get_values())
        self.views[op.result] = View(base.buffer, tuple(offsets), tuple(sizes), axes)

    def _is_dimension(self, size: Value, source: SSAValue, axis: int) -> bool:
        """Whether a size is the run-time extent of the axis itself."""
        return isinstance(size, SSAValue) and self.values.get(size) is self.view(source).buffer.shape[axis]

    def _mapped(self, value: Value) -> Value:
        if isinstance(value, int):
            return value
        known = self.emit.ranges.constant(self.values[value])
        return self.values[value] if known is None else known

    def _view(self, op: tile.ViewOp) -> None:
        base, shape = self.view(op.source), tile.shape_of(op.result)
        kind = op.result.type
        assert isinstance(kind, MemRefType)
        if dtype_of(kind.element_type).nbytes != base.buffer.dtype.nbytes and base.buffer.bytes is not None:
            start = self.emit.mul(first_element(self.emit, base), base.buffer.dtype.nbytes)
            seen = replace(base.buffer, shift=self.emit.add(base.buffer.shift, start))
            self.views[op.result] = whole(self._elements(seen, kind.element_type, shape))
            return
        if kind.element_type != base.buffer.element:
            base = self._reinterpreted(op, base, kind.element_type)
        axes = _match_units(base, shape)
        if axes is None:
            other = reshaped(self.emit, base, shape)
            if other is not None:
                self.views[op.result] = other
                return
            raise refuse(op, f"{base.buffer.label} cannot be seen with shape {list(shape)} without moving data", "T292",
                         notes=(f"its shape is {list(base.shape)}",), help="copy it into a buffer of that shape")
        self.views[op.result] = View(base.buffer, base.offsets, base.sizes, axes)

    def _reinterpreted(self, op: tile.ViewOp, base: View, element: Attribute) -> View:
        """The same bytes with another element type of the same width."""
        buffer = base.buffer
        if dtype_of(element).nbytes != buffer.dtype.nbytes or buffer.fractal:
            raise refuse(op, f"{buffer.label} cannot be seen as {dtype_of(element)} without moving data", "T292",
                         notes=(f"its elements are {buffer.dtype}",), help="convert it with a cast")
        return self.seen_as(base, element)

    def seen_as(self, view: View, element: Attribute) -> View:
        """The same bytes with another element type of the same width."""
        buffer, kind = view.buffer, view.buffer.value.type
        assert isinstance(kind, MemRefType)
        if kind.element_type == element:
            return view
        made = self.emit.insert(hivm.BitcastOp(buffer.value, MemRefType(
            element, kind.shape, kind.layout, kind.memory_space))).results[0]
        made.name_hint = buffer.value.name_hint
        return replace(view, buffer=replace(buffer, value=made))

    def signless(self, view: View) -> View:
        """The same bytes, unsigned integers as signless ones, which constants are."""
        element, kind = view.buffer.element, view.buffer.value.type
        if not isinstance(element, IntegerType) or element.signedness.data is not Signedness.UNSIGNED:
            return view
        assert isinstance(kind, MemRefType)
        plain = MemRefType(IntegerType(element.width.data), kind.shape, kind.layout, kind.memory_space)
        made = self.emit.insert(hivm.BitcastOp(view.buffer.value, plain)).results[0]
        return replace(view, buffer=replace(view.buffer, value=made))

    def _load(self, op: memref.LoadOp) -> None:
        view = self.view(op.memref)
        positions = self._indices(view, list(op.indices), op)
        inside = self._inside(view, positions)
        if inside is None:
            self._bind(op, self.emit.insert(memref.LoadOp.get(view.buffer.value, positions)))
            return
        emit = self.emit
        reach = [emit.value(emit.minimum(position, emit.sub(bound, 1))) if is_read(position) else position
                 for position, bound in zip(positions, view.buffer.shape, strict=True)]
        read = emit.insert(memref.LoadOp.get(view.buffer.value, reach)).res
        kind = view.buffer.element
        plain = kind if not isinstance(kind, IntegerType) else IntegerType(kind.bitwidth)  # all that arith computes on
        bits = read if plain == kind else emit.insert(UnrealizedConversionCastOp.get([read], [plain])).results[0]
        made: Operation = emit.insert(arith.SelectOp(inside, bits, emit.constant(0, plain)))
        if plain != kind:
            made = emit.insert(UnrealizedConversionCastOp.get([made.results[0]], [kind]))
        self._bind(op, made)

    def _inside(self, view: View, positions: list[SSAValue]) -> SSAValue | None:
        """Whether an element of a global tensor whose index was read from memory lies in it; None where it surely does, and
        where the index is computed: one that data give may be a mark for "none", and such a place reads as zero and is not
        written, as it is by a copy."""
        if view.buffer.space != "gm" or not any(is_read(position) for position in positions):
            return None
        found: SSAValue | None = None
        for position, bound in zip(positions, view.buffer.shape, strict=True):
            if self.emit.ranges.of(position).high >= self.emit.ranges.of(bound).low and is_read(position):
                below = self.emit.less(position, bound)
                found = below if found is None else self.emit.insert(arith.AndIOp(found, below)).result
        return found

    def _store(self, op: memref.StoreOp) -> None:
        view = self.view(op.memref)
        positions, value = self._indices(view, list(op.indices), op), self.values[op.value]
        inside = self._inside(view, positions)
        if inside is None:
            self.emit.insert(memref.StoreOp.get(value, view.buffer.value, positions))
            return
        body = Block()
        with self.emit.inside(body):
            self.emit.insert(memref.StoreOp.get(value, view.buffer.value, positions))
            self.emit.insert(scf.YieldOp())
        self.emit.insert(scf.IfOp(inside, [], Region(body)))

    def _indices(self, view: View, indices: list[SSAValue], op: Operation) -> list[SSAValue]:
        if view.buffer.fractal:
            raise refuse(op, f"{view.buffer.label} is in L1 or L0C, where single elements cannot be read or written", "T293",
                         help="keep data that is accessed by element in UB")
        positions = list(view.offsets)
        for axis, index in zip(view.axes, indices, strict=True):
            if axis is not None:
                positions[axis] = self.emit.add(positions[axis], self._mapped(index))
        return [self.emit.value(position) for position in positions]

    def _dimension(self, op: memref.DimOp) -> None:
        view = self.view(op.source)
        axis = self.emit.ranges.constant(self.values[op.index])
        assert axis is not None
        self.values[op.result] = self.emit.value(view.shape[axis])

    def _yield(self, op: scf.YieldOp) -> None:
        self.emit.insert(scf.YieldOp(*(self.values[v] for v in op.operands)))

    def _launch(self, op: tile.LaunchOp) -> None:
        self.shape.bind(self, op)
        self._block(op.body.block)

    def _nothing(self, op: Operation) -> None:
        """The end of the function is written by ``finish_function``."""


def _handler(kind: type[Operation]) -> Callable[[KernelLowering, Any], None] | None:
    """What lowers an operation: dialects may have classes of their own of upstream's operations."""
    return next((_HANDLERS[base] for base in kind.__mro__ if base in _HANDLERS), None)


def _match_units(base: View, shape: tuple[int, ...]) -> tuple[int | None, ...] | None:
    """Axes of the view under a shape that differs from its own in unit axes only."""
    remaining = [(axis, size) for axis, size in zip(base.axes, base.shape, strict=True) if size != 1]
    axes: list[int | None] = []
    for size in shape:
        if size == 1:
            axes.append(None)
        elif remaining and (remaining[0][1] == size or not isinstance(remaining[0][1], int)):
            axes.append(remaining.pop(0)[0])
        else:
            return None
    return tuple(axes) if not remaining else None


def _buffers_of_several_widths(kernel: func.FuncOp) -> set[SSAValue]:
    """Buffers that are seen as elements of different widths."""
    found: set[SSAValue] = set()
    for op in kernel.walk():
        if isinstance(op, tile.ViewOp):
            kinds = [value.type for value in (op.source, op.result)]
            if len({dtype_of(kind.element_type).nbytes for kind in kinds if isinstance(kind, MemRefType)}) > 1:
                found.add(root_of(op.source))
    return found


def _row_wise_buffers(kernel: func.FuncOp) -> set[SSAValue]:
    """Buffers that some operation takes row by row, a copy to or from GM wherever: their rows must start at block boundaries.
    One that is seen under another shape must have no gaps, and one whose address the user fixed has exactly the bytes of its
    shape, because the next address is the user's as well; copies of these stop over where they must."""
    found: set[SSAValue] = set()
    reshaped: set[SSAValue] = set()
    for op in kernel.walk():
        if isinstance(op, tile.ViewOp) and not units_differ(tile.shape_of(op.source), tile.shape_of(op.result)):
            reshaped.add(root_of(op.source))
    for op in kernel.walk():
        if isinstance(op, tile.CopyOp):
            ends = [root_of(use.value) for use in effects_of(op)]
            spaces = [space_of(end) for end in ends]
            if "ub" in spaces and spaces != ["ub", "ub"]:
                found.update(end for end, space in zip(ends, spaces, strict=True)
                             if space == "ub" and end not in reshaped and not _is_pinned(end))
        for use in effects_of(op):
            root = root_of(use.value)
            if (use.role != "scalar" and space_of(root) == "ub" and root not in found
                    and not places_of(use.value, padded=False).whole and is_paddable(root)):
                found.add(root)
    return found


def _is_pinned(root: SSAValue) -> bool:
    """Whether the user fixed the address of an allocation."""
    return isinstance(root.owner, tile.AllocOp) and "address" in root.owner.properties


_HANDLERS: dict[type[Operation], Callable[[KernelLowering, Any], None]] = {
    scf.ForOp: KernelLowering._for,
    scf.IfOp: KernelLowering._if,
    scf.WhileOp: KernelLowering._while,
    scf.YieldOp: KernelLowering._yield,
    tile.LaunchOp: KernelLowering._launch,
    tile.OnCoreOp: KernelLowering._on_core,
    hivm.SyncBlockSetOp: KernelLowering._cross_set,
    hivm.SyncBlockOp: KernelLowering._barrier_of_cores,
    tile.AllocOp: KernelLowering._alloc,
    tile.TensorOp: shaped_argument,
    tile.RegionOp: KernelLowering._region,
    tile.ViewOp: KernelLowering._view,
    tile.CopyOp: lower_copy,
    tile.ElementwiseOp: lower_elementwise,
    tile.ReduceOp: lower_reduce,
    tile.FillOp: lower_fill,
    tile.BroadcastOp: lower_broadcast,
    tile.CallOp: lower_call,
    tile.PrintOp: lower_print,
    tile.PrintfOp: lower_printf,
    tile.DumpOp: lower_dump,
    hivm.DCCIOp: lower_cache,
    tile.GemmOp: lower_gemm,
    tile.YieldOp: KernelLowering._nothing,
    memref.LoadOp: KernelLowering._load,
    memref.StoreOp: KernelLowering._store,
    memref.DimOp: KernelLowering._dimension,
    func.ReturnOp: KernelLowering._nothing,
}

_SCALARS: dict[str, Attribute] = {
    "f16": Float16Type(), "bf16": BFloat16Type(), "f32": Float32Type(), "f64": Float64Type(),
    **{f"i{bits}": IntegerType(bits) for bits in (1, 4, 8, 16, 32, 64)},
    **{f"ui{bits}": IntegerType(bits, Signedness.UNSIGNED) for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True)
class LowerToHivm(ModulePass):
    """The pass; ``chip`` names the chip that the module is for, ``divide`` says whether unscoped work of both cores is fine,
    ``by_hand`` that the author synchronises.
    """

    name = "lower-to-hivm"
    chip: str = chips.DEFAULT
    divide: bool = True
    by_hand: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip = chips.chip(self.chip)
        op.attributes["hacc.target"] = hacc.TargetAttr(chip.hivm_target or chip.name)
        for kernel in [inner for inner in op.ops if isinstance(inner, func.FuncOp)]:
            if any(isinstance(inner, tile.LaunchOp) for inner in kernel.walk()):
                shape = shape_of_kernel(kernel)
                if shape.cores == "MIX":
                    check_cores(kernel, divide=self.divide)
                lowered = KernelLowering(kernel, shape, chip, by_hand=self.by_hand).run()
                Rewriter().replace_op(kernel, lowered, [])


__all__ = ["KernelLowering", "LowerToHivm"]
