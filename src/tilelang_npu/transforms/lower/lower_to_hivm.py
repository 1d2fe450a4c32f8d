"""Lowers a kernel from the tile dialect to HIVM: one MIX, AIC or AIV function, whose buffers have memories but no addresses.

The result is the stage ``hivm-auto``, the input for the vendor's compiler, which splits the function into cores, plans memory
and inserts synchronisation. Allocations are ``memref.alloc``, matrices in L1 and L0C have the zN layout, and data goes from one
core to the other through ``memref_ext.alloc_workspace``. Tiles are clipped to their tensors unless they provably lie inside.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

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
from tilelang_npu.analysis.block_alignment import differ_in_unit_axes_only, is_paddable, places_of
from tilelang_npu.analysis.buffers import SCRATCH, root_of, space_of
from tilelang_npu.analysis.cores import forget_core
from tilelang_npu.analysis.locations import refuse
from tilelang_npu.analysis.ranges import is_read
from tilelang_npu.dialects import annotation, hacc, hivm, memref_ext, tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.text.names import escape_name
from tilelang_npu.ops import DType
from tilelang_npu.target.chip_data import FunctionCore, Space
from tilelang_npu.transforms.infra.op_builder import OpBuilder, Value
from tilelang_npu.transforms.lower.calls import PATTERNS, lower_by_pattern
from tilelang_npu.transforms.lower.compute import (
    lower_broadcast,
    lower_elementwise,
    lower_fill,
    lower_gemm,
    lower_reduce,
)
from tilelang_npu.transforms.lower.copies import lower_copy
from tilelang_npu.transforms.lower.core_attributes import write_core
from tilelang_npu.transforms.lower.launch import (
    KernelShape,
    begin_function,
    check_core_scopes,
    finish_function,
    kernel_shape_of,
    lower_strided_tensor,
    lower_tensor,
)
from tilelang_npu.transforms.lower.scaled_operands import allocate_scales, scale_buffers
from tilelang_npu.transforms.lower.vector_function_calls import lower_vector_function
from tilelang_npu.transforms.lower.views import LoweredBuffer, View, first_element, fractal_shape, reshaped, whole_view

ADDRESS = "tile.address"  # attribute of memref.alloc: the byte address that the user fixed; gone after planning


def _allocation_of(value: SSAValue) -> Operation:
    """Returns the allocation of a lowered buffer, whose memref may be its shape cut out of a padded one, or bytes viewed as its
    elements."""
    owner = value.owner
    if isinstance(owner, (memref.SubviewOp, memref.ViewOp)):
        owner = owner.source.owner
    assert isinstance(owner, (memref.AllocOp, memref_ext.AllocWorkspaceOp))
    return owner


def _signedness_of(kind: Attribute) -> Signedness:
    """Returns the signedness of an integer type; SIGNLESS for every other type."""
    return kind.signedness.data if isinstance(kind, IntegerType) else Signedness.SIGNLESS


_SIDES: dict[FunctionCore, Literal["cube", "vector"]] = {"AIC": "cube", "AIV": "vector"}


class KernelLowering:
    """Lowers one kernel to an HIVM function.

    Args:
        kernel: the kernel in the tile dialect.
        shape: the cores that execute the kernel, and the number of sub-blocks.
        chip: the chip that the kernel is compiled for.
        by_hand: whether the kernel's author inserts the waits between statements.

    Attributes:
        values: the value in the HIVM function for each scalar of the kernel.
        views: the view in the HIVM function for each buffer or slice of the kernel.
        padded: the buffers whose rows are padded to whole blocks of 32 bytes.
        byte_buffers: the buffers that are allocated as bytes, since they are viewed with element types of several widths.
        scales: the buffers that hold the scales of MX matrices, and the side of the matrix, ``a`` or ``b``.
        loaded_columns: for each buffer in L0A or L0B the numbers of columns (k or n) of its loads that have been lowered.
        functions: the vector functions that the kernel calls.
        emit: inserts operations into the HIVM function.
    """

    def __init__(self, kernel: func.FuncOp, shape: KernelShape, chip: chips.Chip, *, by_hand: bool):
        self.kernel = kernel
        self.shape = shape
        self.chip = chip
        self.by_hand = by_hand
        self.values: dict[SSAValue, SSAValue] = {}
        self.views: dict[SSAValue, View] = {}
        self.padded = _row_wise_buffers(kernel)
        self.byte_buffers = _buffers_of_several_widths(kernel)
        self.scales = scale_buffers(kernel)
        self.loaded_columns: dict[SSAValue, list[Value]] = defaultdict(list)
        self.functions: list[func.FuncOp] = []
        self.emit: OpBuilder

    def run(self) -> func.FuncOp:
        """Lowers the kernel and returns the HIVM function."""
        made, self.emit = begin_function(self)
        self._lower_block(self.kernel.body.block)
        finish_function(self, made)
        return made

    def view(self, value: SSAValue) -> View:
        """Returns the view in the HIVM function for a buffer or slice of the kernel."""
        return self.views[value]

    def type_of(self, kind: DType) -> Attribute:
        """Returns the MLIR type of an element type."""
        return _SCALARS[kind.mlir]

    def scalar(self, value: SSAValue | float, element: Attribute) -> SSAValue:
        """Returns a scalar, or a Python number, converted to an element type.

        A float becomes an integer by truncation, and a narrower float by rounding.
        """
        if not isinstance(value, SSAValue):
            return self.emit.constant(value, element)
        if value.type == element:
            return value
        owner = value.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, (IntegerAttr, FloatAttr)):
            return self.emit.constant(owner.value.value.data, element)
        return self._convert_scalar(value, element)

    def _convert_scalar(self, value: SSAValue, element: Attribute, *, unsigned: bool = False) -> SSAValue:
        emit, kind = self.emit, value.type
        if isinstance(kind, IndexType):
            return self._convert_scalar(emit.insert(arith.IndexCastOp(value, IntegerType(32))).result, element)
        if kind == element:
            return value
        if _signedness_of(kind) is not Signedness.SIGNLESS:
            return self._convert_scalar(self._as_signless(value), element, unsigned=_signedness_of(kind) is Signedness.UNSIGNED)
        if isinstance(element, IntegerType) and _signedness_of(element) is not Signedness.SIGNLESS:
            plain = IntegerType(element.width)
            from_float = not isinstance(kind, IntegerType) and _signedness_of(element) is Signedness.UNSIGNED
            bits: SSAValue = (emit.insert(arith.FPToUIOp(value, plain)).result if from_float
                              else self._convert_scalar(value, plain, unsigned=unsigned))
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

    def _as_signless(self, value: SSAValue) -> SSAValue:
        """Returns a signed or unsigned integer as a signless one: ``arith`` has no operations on the others."""
        assert isinstance(value.type, IntegerType)
        plain = IntegerType(value.type.width)
        if isinstance(value.owner, UnrealizedConversionCastOp) and value.owner.inputs[0].type == plain:
            return value.owner.inputs[0]
        made: SSAValue = self.emit.insert(UnrealizedConversionCastOp.get([value], [plain])).results[0]
        return made

    def vector_mode(self, core: hivm.CoreType) -> str | None:
        """Returns the execution mode that a custom operation must state on chips with several vector modes, otherwise None.

        Args:
            core: the core of the operation: ``VECTOR``, ``CUBE`` or ``CUBE_OR_VECTOR``. For ``CUBE``, the result is None.
        """
        return "SIMD" if self.chip.features.vector_modes and core != "CUBE" else None

    def scratch(self, like: View, element: Attribute) -> View:
        """Emits the allocation of a temporary tile in UB and returns its view, with the shape of ``like`` and a given element
        type.
        """
        sizes: list[int] = []
        for axis, size in zip(like.axes, like.shape, strict=True):
            bound = size if isinstance(size, int) or axis is None else like.buffer.shape[axis]
            sizes.append(bound if isinstance(bound, int) else 1)
        buffer = self.allocate("scratch", sizes, element, "ub", pad=True)
        _allocation_of(buffer.value).attributes[SCRATCH] = UnitAttr()
        made = whole_view(buffer)
        return made if made.shape == like.shape else made.resized(like.shape)

    def allocate(self, label: str, shape: list[int], element: Attribute, space: Space, *, pad: bool) -> LoweredBuffer:
        """Emits the allocation of a buffer (in GM: of a workspace) and returns the buffer.

        Args:
            label: the name of the buffer.
            shape: the logical shape. Matrices in L1, L0A, L0B and L0C are allocated in zN layout.
            element: the element type.
            space: the memory, by HIVM's name.
            pad: whether each row in UB is padded to whole blocks of 32 bytes.
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
                return LoweredBuffer(self._narrow_to_shape(made, shape, element, memory), space, tuple(shape), label)
        made.results[0].name_hint = escape_name(label)
        return LoweredBuffer(made.results[0], space, tuple(shape), label)

    def _narrow_to_shape(self, made: memref.AllocOp, shape: list[int], element: Attribute, memory: Attribute) -> SSAValue:
        assert isinstance(made.memref.type, MemRefType)
        strides = list(made.memref.type.get_strides() or [])
        kind = MemRefType(element, shape, StridedLayoutAttr(strides, 0), memory)
        zeros, ones = [0] * len(shape), [1] * len(shape)
        narrow = self.emit.insert(memref.SubviewOp.get(made.memref, zeros, shape, ones, kind)).result
        narrow.name_hint = made.memref.name_hint
        return narrow

    def _lower_block(self, block: Block) -> None:
        for op in block.ops:
            self.emit.location = op.location
            handler = _handler_of(type(op))
            if handler is not None:
                handler(self, op)
            else:
                self._clone_op(op)

    def _clone_op(self, op: Operation) -> None:
        if op.regions or any(isinstance(operand.type, MemRefType) for operand in op.operands):
            raise refuse(op, f"{op.name} has no lowering to HIVM", "T290")
        made = self.emit.insert(op.clone(value_mapper=dict(self.values)))
        forget_core(made)
        self._bind_results(op, made)

    def _bind_results(self, old: Operation, new: Operation) -> None:
        for before, after in zip(old.results, new.results, strict=True):
            self.values[before] = after
            after.name_hint = before.name_hint

    def _lower_region(self, region: Region, arguments: list[Attribute]) -> Region:
        source = region.block
        block = Block(arg_types=arguments)
        for before, after in zip(source.args, block.args, strict=True):
            self.values[before] = after
            after.name_hint = before.name_hint
        with self.emit.inside(block):
            self._lower_block(source)
        return Region(block)

    def _lower_for(self, op: scf.ForOp) -> None:
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
            self._lower_block(op.body.block)
        self._bind_results(op, made)

    def _lower_if(self, op: scf.IfOp) -> None:
        with self.emit.where(self.values[op.cond]):
            then = self._lower_region(op.true_region, [])
        other = self._lower_region(op.false_region, []) if op.false_region.blocks else Region()
        self.emit.location = op.location
        made = scf.IfOp(self.values[op.cond], [r.type for r in op.results], then, other)
        self.emit.insert(made)
        self._bind_results(op, made)

    def _lower_while(self, op: scf.WhileOp) -> None:
        carried = [self.values[v] for v in op.arguments]
        before = self._lower_region(op.before_region, [a.type for a in op.before_region.block.args])
        after = self._lower_region(op.after_region, [a.type for a in op.after_region.block.args])
        self.emit.location = op.location
        made = scf.WhileOp(carried, [r.type for r in op.results], before, after)
        self.emit.insert(made)
        self._bind_results(op, made)

    def _lower_on_core(self, op: tile.OnCoreOp) -> None:
        block = self.emit.point.block
        last = block.last_op
        self._lower_block(op.body.block)
        made = block.first_op if last is None else last.next_op
        while made is not None:
            write_core(made, "AIC" if op.core.data == "cube" else "AIV", self.chip)
            made = made.next_op

    def _lower_cross_set(self, op: hivm.SyncBlockSetOp) -> None:
        """A flag that the author sets needs the base address of the flags."""
        flag = op.flag_id()
        made = self.emit.insert(hivm.SyncBlockSetOp(
            op.tcore_type, op.tpipe, op.pipe, flag if isinstance(flag, int) else self.values[flag],
            ffts=self.emit.entry.args[0], mode=op.tsync_instr_mode.data))
        made.attributes.update(op.attributes)
        forget_core(made)

    def _lower_core_barrier(self, op: hivm.SyncBlockOp) -> None:
        """In a kernel of one kind of core, a barrier of all cores is one of this kind, and one of the other kind is dropped."""
        kind = _SIDES.get(self.shape.cores)
        mode = op.sync_block_mode.data
        if kind is not None and mode == {"cube": "ALL_VECTOR", "vector": "ALL_CUBE"}[kind]:
            return
        made = self.emit.insert(hivm.barrier_of_cores(kind) if mode == "ALL" and kind is not None else op.clone())
        forget_core(made)

    def _lower_pipe_barrier(self, op: hivm.PipeBarrierOp) -> None:
        """In a kernel of one kind of core, a barrier of a pipe that only the other kind has is dropped."""
        if self.shape.cores == "MIX" or op.core() in ("either", self.shape.cores):
            self.emit.insert(op.clone())

    def _lower_alloc(self, op: tile.AllocOp) -> None:
        kind, space = op.result.type, space_of(op.result)
        assert isinstance(kind, MemRefType)
        if space == "shared" or space == "fragment":
            raise refuse(op, f"{op.label.data} has no memory yet; run infer-scopes first", "T291")
        shape = list(kind.get_shape())
        if op.result in self.byte_buffers and space == "ub":
            self.views[op.result] = whole_view(self._allocate_bytes(op, kind))
            self._mark_allocation(op, _allocation_of(self.views[op.result].buffer.value))
            return
        if space == "local":
            made = self.emit.insert(memref.AllocaOp.get(kind.element_type, shape=shape))
            self.views[op.result] = whole_view(LoweredBuffer(made.results[0], "local", tuple(shape), op.label.data))
            return
        if op.result in self.scales:
            self.views[op.result] = allocate_scales(self, op, self.scales[op.result])
            self._mark_allocation(op, _allocation_of(self.views[op.result].buffer.value))
            return
        pad = root_of(op.result) in self.padded
        buffer = self.allocate(op.label.data, shape, kind.element_type, space, pad=pad)
        self._mark_allocation(op, _allocation_of(buffer.value))
        self.views[op.result] = whole_view(buffer)

    def _allocate_bytes(self, op: tile.AllocOp, kind: MemRefType[Attribute]) -> LoweredBuffer:
        """Emits an allocation of bytes, viewed as the buffer's elements; views of another element width show the same bytes."""
        emit, label = self.emit, op.label.data
        shape, element = tuple(kind.get_shape()), kind.element_type
        count = math.prod(shape) * dtype_of(element).nbytes
        made = emit.insert(memref.AllocOp([], [], MemRefType(IntegerType(8), [count], memory_space=kind.memory_space)))
        made.memref.name_hint = escape_name(label)
        return self._view_as_elements(LoweredBuffer(made.memref, "ub", shape, label, bytes=made.memref), element, shape)

    def _view_as_elements(self, buffer: LoweredBuffer, element: Attribute, shape: tuple[int, ...]) -> LoweredBuffer:
        """Returns the bytes of a buffer, from its shift on, viewed as elements of a type."""
        source = buffer.bytes
        assert source is not None and isinstance(source.type, MemRefType)
        kind = MemRefType(element, shape, memory_space=source.type.memory_space)
        made = self.emit.insert(memref.ViewOp(source, self.emit.value(buffer.shift), [], kind)).results[0]
        made.name_hint = escape_name(buffer.label)
        return replace(buffer, value=made, shape=shape, start=0)

    def _mark_allocation(self, op: tile.AllocOp, owner: Operation) -> None:
        """Write a buffer's address, number of slots and role on its allocation."""
        if op.address is not None:
            owner.attributes[ADDRESS] = op.address
        if SCRATCH in op.attributes:
            owner.attributes[SCRATCH] = UnitAttr()
        if op.slots is not None:
            mark = self.emit.insert(annotation.MarkOp(owner.results[0]))
            mark.attributes["hivm.multi_buffer"] = IntegerAttr(op.slots.value.data, 32)

    def _lower_slice(self, op: tile.RegionOp) -> None:
        base = self.view(op.source)
        offsets, sizes = list(base.offsets), list(base.sizes)
        for axis, offset, size in zip(base.axes, op.mixed_offsets(), op.mixed_sizes(), strict=True):
            new_size = self._value_of(size)
            if axis is not None:
                offsets[axis] = self.emit.add(offsets[axis], self._value_of(offset))
                full = isinstance(base.buffer.shape[axis], SSAValue) and self._is_dimension(size, op.source, axis)
                sizes[axis] = base.buffer.shape[axis] if full else new_size
        axes = tuple(base.axes[axis] for axis in op.kept.get_values())
        self.views[op.result] = View(base.buffer, tuple(offsets), tuple(sizes), axes)

    def _is_dimension(self, size: Value, source: SSAValue, axis: int) -> bool:
        """Whether a size is the run-time extent of the axis itself."""
        return isinstance(size, SSAValue) and self.values.get(size) is self.view(source).buffer.shape[axis]

    def _value_of(self, value: Value) -> Value:
        if isinstance(value, int):
            return value
        known = self.emit.ranges.constant(self.values[value])
        return self.values[value] if known is None else known

    def _lower_view(self, op: tile.ViewOp) -> None:
        base, shape = self.view(op.source), tile.shape_of(op.result)
        kind = op.result.type
        assert isinstance(kind, MemRefType)
        if dtype_of(kind.element_type).nbytes != base.buffer.dtype.nbytes and base.buffer.bytes is not None:
            start = self.emit.mul(first_element(self.emit, base), base.buffer.dtype.nbytes)
            seen = replace(base.buffer, shift=self.emit.add(base.buffer.shift, start))
            self.views[op.result] = whole_view(self._view_as_elements(seen, kind.element_type, shape))
            return
        if kind.element_type != base.buffer.element:
            base = self._with_element_type(op, base, kind.element_type)
        axes = _axes_without_units(base, shape)
        if axes is None:
            other = reshaped(self.emit, base, shape)
            if other is not None:
                self.views[op.result] = other
                return
            raise refuse(op, f"{base.buffer.label} cannot be viewed with shape {list(shape)} without moving data", "T292",
                         notes=(f"its shape is {list(base.shape)}",), help="copy it into a buffer of that shape")
        self.views[op.result] = View(base.buffer, base.offsets, base.sizes, axes)

    def _with_element_type(self, op: tile.ViewOp, base: View, element: Attribute) -> View:
        """The same bytes with another element type of the same width."""
        buffer = base.buffer
        if dtype_of(element).nbytes != buffer.dtype.nbytes or buffer.fractal:
            raise refuse(op, f"{buffer.label} cannot be viewed as {dtype_of(element)} without moving data", "T292",
                         notes=(f"its elements are {buffer.dtype}",), help="convert it with a cast")
        return self.seen_as(base, element)

    def seen_as(self, view: View, element: Attribute) -> View:
        """Returns a view of the same bytes with another element type, which must have the same width."""
        buffer, kind = view.buffer, view.buffer.value.type
        assert isinstance(kind, MemRefType)
        if kind.element_type == element:
            return view
        made = self.emit.insert(hivm.BitcastOp(buffer.value, MemRefType(
            element, kind.shape, kind.layout, kind.memory_space))).results[0]
        made.name_hint = buffer.value.name_hint
        return replace(view, buffer=replace(buffer, value=made))

    def signless(self, view: View) -> View:
        """Returns a view of the same bytes in which unsigned integers are signless, so that constants have the same type."""
        element, kind = view.buffer.element, view.buffer.value.type
        if not isinstance(element, IntegerType) or element.signedness.data is not Signedness.UNSIGNED:
            return view
        assert isinstance(kind, MemRefType)
        plain = MemRefType(IntegerType(element.width.data), kind.shape, kind.layout, kind.memory_space)
        made = self.emit.insert(hivm.BitcastOp(view.buffer.value, plain)).results[0]
        return replace(view, buffer=replace(view.buffer, value=made))

    def _lower_load(self, op: memref.LoadOp) -> None:
        view = self.view(op.memref)
        positions = self._positions(view, list(op.indices), op)
        inside = self._in_bounds(view, positions)
        if inside is None:
            self._bind_results(op, self.emit.insert(memref.LoadOp.get(view.buffer.value, positions)))
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
        self._bind_results(op, made)

    def _in_bounds(self, view: View, positions: list[SSAValue]) -> SSAValue | None:
        """Returns an i1 value: whether an element of a global tensor, whose index was read from memory, is inside the tensor.

        Returns None if the element surely is, or if the index is computed and not read from memory. An index in the user's data
        may be a mark for "no element": such an element reads as zero and is not written, as in a copy.
        """
        if view.buffer.space != "gm" or not any(is_read(position) for position in positions):
            return None
        found: SSAValue | None = None
        for position, bound in zip(positions, view.buffer.shape, strict=True):
            if self.emit.ranges.of(position).high >= self.emit.ranges.of(bound).low and is_read(position):
                below = self.emit.less(position, bound)
                found = below if found is None else self.emit.insert(arith.AndIOp(found, below)).result
        return found

    def _lower_store(self, op: memref.StoreOp) -> None:
        view = self.view(op.memref)
        positions, value = self._positions(view, list(op.indices), op), self.values[op.value]
        inside = self._in_bounds(view, positions)
        if inside is None:
            self.emit.insert(memref.StoreOp.get(value, view.buffer.value, positions))
            return
        body = Block()
        with self.emit.inside(body):
            self.emit.insert(memref.StoreOp.get(value, view.buffer.value, positions))
            self.emit.insert(scf.YieldOp())
        self.emit.insert(scf.IfOp(inside, [], Region(body)))

    def _positions(self, view: View, indices: list[SSAValue], op: Operation) -> list[SSAValue]:
        if view.buffer.fractal:
            raise refuse(op, f"{view.buffer.label} is in L1 or L0C, where single elements cannot be read or written", "T293",
                         help="keep data that is accessed by element in UB")
        positions = list(view.offsets)
        for axis, index in zip(view.axes, indices, strict=True):
            if axis is not None:
                positions[axis] = self.emit.add(positions[axis], self._value_of(index))
        return [self.emit.value(position) for position in positions]

    def _lower_dim(self, op: memref.DimOp) -> None:
        view = self.view(op.source)
        axis = self.emit.ranges.constant(self.values[op.index])
        assert axis is not None
        self.values[op.result] = self.emit.value(view.shape[axis])

    def _lower_yield(self, op: scf.YieldOp) -> None:
        self.emit.insert(scf.YieldOp(*(self.values[v] for v in op.operands)))

    def _lower_launch(self, op: tile.LaunchOp) -> None:
        self.shape.bind(self, op)
        self._lower_block(op.body.block)

    def _skip(self, op: Operation) -> None:
        """The end of the function is written by ``finish_function``."""


def _handler_of(kind: type[Operation]) -> Callable[[KernelLowering, Any], None] | None:
    """Returns the method that lowers an operation; dialects may have subclasses of upstream's operations."""
    return next((_HANDLERS[base] for base in kind.__mro__ if base in _HANDLERS), None)


def _axes_without_units(base: View, shape: tuple[int, ...]) -> tuple[int | None, ...] | None:
    """Returns the axes of a view for a shape that differs from its own in unit axes only; None if it differs otherwise."""
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
    """Returns the buffers that are viewed with elements of several widths."""
    found: set[SSAValue] = set()
    for op in kernel.walk():
        if isinstance(op, tile.ViewOp):
            kinds = [value.type for value in (op.source, op.result)]
            if len({dtype_of(kind.element_type).nbytes for kind in kinds if isinstance(kind, MemRefType)}) > 1:
                found.add(root_of(op.source))
    return found


def _row_wise_buffers(kernel: func.FuncOp) -> set[SSAValue]:
    """Returns the buffers in UB that some operation accesses row by row, so that their rows must start at blocks.

    Not those that are viewed under another shape, which must have no gaps, nor those whose address the author fixed, which take
    exactly the bytes of their shape, since the next address is the author's too. Copies of these take a detour through an
    aligned tile if they must.
    """
    found: set[SSAValue] = set()
    reshaped: set[SSAValue] = set()
    for op in kernel.walk():
        if isinstance(op, tile.ViewOp) and not differ_in_unit_axes_only(tile.shape_of(op.source), tile.shape_of(op.result)):
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
    """Whether the author fixed the address of an allocation."""
    return isinstance(root.owner, tile.AllocOp) and "address" in root.owner.properties


_HANDLERS: dict[type[Operation], Callable[[KernelLowering, Any], None]] = {
    scf.ForOp: KernelLowering._lower_for,
    scf.IfOp: KernelLowering._lower_if,
    scf.WhileOp: KernelLowering._lower_while,
    scf.YieldOp: KernelLowering._lower_yield,
    tile.LaunchOp: KernelLowering._lower_launch,
    tile.OnCoreOp: KernelLowering._lower_on_core,
    hivm.SyncBlockSetOp: KernelLowering._lower_cross_set,
    hivm.SyncBlockOp: KernelLowering._lower_core_barrier,
    hivm.PipeBarrierOp: KernelLowering._lower_pipe_barrier,
    tile.AllocOp: KernelLowering._lower_alloc,
    tile.TensorOp: lower_tensor,
    tile.StridedTensorOp: lower_strided_tensor,
    tile.RegionOp: KernelLowering._lower_slice,
    tile.ViewOp: KernelLowering._lower_view,
    tile.CopyOp: lower_copy,
    tile.ElementwiseOp: lower_elementwise,
    tile.ReduceOp: lower_reduce,
    tile.FillOp: lower_fill,
    tile.BroadcastOp: lower_broadcast,
    **dict.fromkeys(PATTERNS, lower_by_pattern),
    tile.GemmOp: lower_gemm,
    tile.VectorFunctionOp: lower_vector_function,
    tile.YieldOp: KernelLowering._skip,
    memref.LoadOp: KernelLowering._lower_load,
    memref.StoreOp: KernelLowering._lower_store,
    memref.DimOp: KernelLowering._lower_dim,
    func.ReturnOp: KernelLowering._skip,
}

_SCALARS: dict[str, Attribute] = {
    "f16": Float16Type(), "bf16": BFloat16Type(), "f32": Float32Type(), "f64": Float64Type(),
    **{f"i{bits}": IntegerType(bits) for bits in (1, 4, 8, 16, 32, 64)},
    **{f"ui{bits}": IntegerType(bits, Signedness.UNSIGNED) for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True)
class LowerToHivm(ModulePass):
    """Lowers each kernel from the tile dialect to an HIVM function whose buffers have memories but no addresses.

    Attributes:
        chip: the name of the chip that the module is compiled for.
        divide: whether a kernel that uses both cores may contain operations outside of any ``T.Scope``.
        by_hand: whether the author inserts the waits inside the cores.
    """

    name = "lower-to-hivm"
    chip: str = chips.DEFAULT
    divide: bool = True
    by_hand: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip = chips.chip(self.chip)
        op.attributes["hacc.target"] = hacc.TargetAttr(chip.target_name)
        for kernel in [inner for inner in op.ops if isinstance(inner, func.FuncOp)]:
            if any(isinstance(inner, tile.LaunchOp) for inner in kernel.walk()):
                shape = kernel_shape_of(kernel)
                check_core_scopes(kernel, divide=self.divide or shape.cores != "MIX")
                lowering = KernelLowering(kernel, shape, chip, by_hand=self.by_hand)
                lowered = lowering.run()
                Rewriter().replace_op(kernel, [lowered, *lowering.functions], [])


__all__ = ["KernelLowering", "LowerToHivm"]
