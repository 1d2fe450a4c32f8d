"""Bufferises a kernel of another tool: HIVM operations on tensors become HIVM operations on memrefs.

An operation writes into the buffer of its destination tensor if no other operation reads that tensor. Otherwise it writes into
a new buffer, which receives a copy of the destination if the operation reads the destination. A tensor that a loop carries or a
branch yields has one buffer, into which each source is copied. The pass ``place-buffers`` assigns the buffers' memories and
chooses the operations of the copies afterwards. A kernel with tensor arguments is refused, since the owner of their memory is
unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, bufferization, func, memref, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StridedLayoutAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.locations import refuse
from tilelang_npu.analysis.toolchain_arguments import kernels
from tilelang_npu.dialects import annotation, hivm
from tilelang_npu.dialects.ir.destination_style import StructuredOp
from tilelang_npu.dialects.mlir.bufferization import MaterializeInDestinationOp, ToTensorOp
from tilelang_npu.dialects.mlir.rules import offset_of_slice, unless_dynamic

_RESHAPES: dict[str, type[Operation]] = {
    "tensor.expand_shape": memref.ExpandShapeOp, "tensor.collapse_shape": memref.CollapseShapeOp}


def _overwrites_destination(op: StructuredOp) -> bool:
    """Whether an op surely writes each element of its destination, and reads none of it."""
    if isinstance(op, (hivm.MmadL1Op, hivm.BatchMmadL1Op)):
        init = op.init_condition.owner
        return isinstance(init, arith.ConstantOp) and isinstance(init.value, IntegerAttr) and init.value.value.data != 0
    return isinstance(op, (hivm.ElementwiseOp, hivm.VBrcOp, hivm.VReduceOp, hivm.VTransposeOp, hivm.VArangeOp, hivm.CopyOp))


def _buffer_type(kind: Attribute) -> MemRefType[Attribute]:
    assert isinstance(kind, TensorType)
    return MemRefType(kind.element_type, kind.shape)


class _FunctionBufferiser:
    """Bufferises one function, in the order of the text.

    Attributes:
        buffers: the buffer of each tensor.
        shared_buffers: buffers that belong to more than one value: those that ``to_tensor`` reads, and views.
        ops_to_erase: ops on tensors, to be erased after all their users.
        loop_arguments_to_erase: arguments of loop bodies, to be erased with them.
    """

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.shared_buffers: set[SSAValue] = set()
        """Buffers that are not a value's own: those that ``to_tensor`` reads, and views."""
        self.ops_to_erase: list[Operation] = []
        """Ops on tensors, which go once all that read them are gone."""
        self.loop_arguments_to_erase: list[tuple[Block, list[int]]] = []
        """Arguments of loop bodies that go with them."""

    def run(self) -> None:
        for argument in self.function.body.block.args:
            if isinstance(argument.type, TensorType):
                raise refuse(self.function, "an argument of the kernel is a tensor, but must be a memref", "T501",
                             help="declare a memref, and convert it with bufferization.to_tensor")
        self._bufferise_block(self.function.body.block)

    def _bufferise_block(self, block: Block) -> None:
        for op in list(block.ops):
            self._bufferise_op(op)

    def _bufferise_op(self, op: Operation) -> None:
        if isinstance(op, scf.ForOp):
            self._convert_loop(op)
        elif isinstance(op, scf.IfOp):
            self._convert_branch(op)
        elif isinstance(op, scf.YieldOp) or not any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
            for region in op.regions:
                for block in region.blocks:
                    self._bufferise_block(block)
        else:
            self._convert_tensor_op(op)

    def _convert_tensor_op(self, op: Operation) -> None:
        if isinstance(op, tensor.EmptyOp):
            return  # made where it is written
        if isinstance(op, (bufferization.ToTensorOp, ToTensorOp)):
            self.buffers[op.results[0]] = op.operands[0]
            self.shared_buffers.add(op.operands[0])
        elif isinstance(op, MaterializeInDestinationOp):
            self._convert_materialise(op)
        elif isinstance(op, StructuredOp):
            self._convert_structured(op)
        elif isinstance(op, (annotation.MarkOp, hivm.DebugOp)):
            for index, operand in enumerate(op.operands):
                if isinstance(operand.type, TensorType):
                    op.operands[index] = self._buffer_of(operand, op)
            return
        elif op.name in _RESHAPES:
            self._replace_by_view(op, _RESHAPES[op.name].create(
                operands=[self._buffer_of(op.operands[0], op), *op.operands[1:]],
                result_types=[_buffer_type(op.results[0].type)], properties=dict(op.properties)))
        elif isinstance(op, tensor.ExtractSliceOp):
            self._replace_by_view(op, self._make_subview(op, self._buffer_of(op.source, op)))
        elif isinstance(op, tensor.InsertSliceOp):
            target = self._destination_buffer(op.dest, op, keep=True)
            view = self._make_subview(op, target)
            self._insert_before(op, view)
            self._insert_before(op, memref.CopyOp(self._buffer_of(op.source, op), view.results[0]))
            self.buffers[op.results[0]] = target
        elif isinstance(op, tensor.ExtractOp):
            element = memref.LoadOp.get(self._buffer_of(op.operands[0], op), list(op.operands[1:]))
            self._insert_before(op, element)
            op.results[0].replace_all_uses_with(element.res)
        elif isinstance(op, tensor.InsertOp):
            target = self._destination_buffer(op.operands[1], op, keep=True)
            self._insert_before(op, memref.StoreOp.get(op.operands[0], target, list(op.operands[2:])))
            self.buffers[op.results[0]] = target
        elif isinstance(op, tensor.DimOp):
            size = memref.DimOp.from_source_and_index(self._buffer_of(op.operands[0], op), op.operands[1])
            self._insert_before(op, size)
            op.results[0].replace_all_uses_with(size.result)
        elif isinstance(op, arith.ConstantOp):
            self._convert_constant(op)
        else:
            raise refuse(op, f"{op.name} on tensors cannot be bufferised", "T501",
                         help="lower the module to buffers with the toolchain's passes first")
        self.ops_to_erase.append(op)

    def _insert_before(self, before: Operation, made: Operation) -> SSAValue | None:
        made.location = before.location
        Rewriter().insert_op(made, InsertPoint.before(before))
        return made.results[0] if made.results else None

    def _replace_by_view(self, op: Operation, made: Operation) -> None:
        self._insert_before(op, made)
        made.results[0].name_hint = op.results[0].name_hint
        self.buffers[op.results[0]] = made.results[0]
        self.shared_buffers.add(made.results[0])

    def _buffer_of(self, value: SSAValue, user: Operation) -> SSAValue:
        """Returns the buffer of a tensor."""
        if value not in self.buffers:
            if not isinstance(value.owner, tensor.EmptyOp):
                raise refuse(user, "the operation that defines this tensor operand cannot be bufferised", "T501",
                             help="lower the module to buffers with the toolchain's passes first")
            self.buffers[value] = self._alloc_for(value, user)
        return self.buffers[value]

    def _alloc_for(self, value: SSAValue, user: Operation) -> SSAValue:
        kind = _buffer_type(value.type)
        if DYNAMIC_INDEX in kind.get_shape():
            raise refuse(user, f"a buffer of dynamic size, {kind}, cannot be planned at compile time", "T501",
                         help="allocate a buffer of the largest size, and use a subview of it")
        made = self._insert_before(user, memref.AllocOp([], [], kind))
        assert made is not None
        made.name_hint = value.name_hint
        return made

    def _destination_buffer(self, dest: SSAValue, user: Operation, *, keep: bool) -> SSAValue:
        """Returns a buffer that an op may write as its destination; with ``keep``, it has the destination's contents."""
        buffer = self.buffers.get(dest)
        users = [use.operation for use in dest.uses]
        own_source = isinstance(user, hivm.ElementwiseOp) and user.ENTRY.in_place
        alone = all(other is user for other in users) and (len(users) == 1 or own_source)
        same_block = isinstance(dest.owner, Operation) and dest.owner.parent_block() is user.parent_block()
        if buffer is not None and alone and same_block and buffer not in self.shared_buffers:
            return buffer
        made = self._alloc_for(dest, user)
        if keep and not isinstance(dest.owner, tensor.EmptyOp):
            self._insert_before(user, memref.CopyOp(self._buffer_of(dest, user), made))
        return made

    def _convert_structured(self, op: StructuredOp) -> None:
        outs = op.outs()
        targets: dict[SSAValue, SSAValue] = {}
        to_memory = isinstance(op, (hivm.StoreOp, hivm.FixpipeOp))
        for out in outs:
            if isinstance(out.type, TensorType):
                targets[out] = (self._buffer_of(out, op) if to_memory
                                else self._destination_buffer(out, op, keep=not _overwrites_destination(op)))
        names = type(op).get_irdl_definition().operands
        operands: list[Sequence[SSAValue]] = []
        for name, _ in names:
            held = getattr(op, name)
            values = [] if held is None else [held] if isinstance(held, SSAValue) else list(held)
            is_out = bool(values) and all(any(value is out for out in outs) for value in values) and name in type(op).WRITES
            operands.append([targets[value] if is_out and value in targets else
                             self._buffer_of(value, op) if isinstance(value.type, TensorType) else value for value in values])
        segments = ("operandSegmentSizes", "resultSegmentSizes")
        properties = {name: value for name, value in op.properties.items() if name not in segments}
        made = type(op).build(operands=operands, result_types=[[] for _ in type(op).get_irdl_definition().results],
                              properties=properties, attributes=dict(op.attributes))
        self._insert_before(op, made)
        for out, result in zip((out for out in outs if isinstance(out.type, TensorType)), op.results, strict=True):
            self.buffers[result] = targets[out]

    def _convert_materialise(self, op: MaterializeInDestinationOp) -> None:
        target = op.dest if isinstance(op.dest.type, MemRefType) else self._buffer_of(op.dest, op)
        source = self._buffer_of(op.source, op)
        if source is not target:
            self._insert_before(op, memref.CopyOp(source, target))
        if op.result is not None:
            self.buffers[op.result] = target

    def _make_subview(self, op: tensor.ExtractSliceOp | tensor.InsertSliceOp, source: SSAValue) -> memref.SubviewOp:
        kind = source.type
        assert isinstance(kind, MemRefType)
        part = op.results[0].type if isinstance(op, tensor.ExtractSliceOp) else op.source.type
        assert isinstance(part, TensorType)
        strides = kind.get_strides()
        steps = list(op.static_strides.get_values())
        sizes = list(op.static_sizes.get_values())
        if strides is None or None in strides or len(sizes) != len(part.get_shape()) or DYNAMIC_INDEX in steps:
            raise refuse(op, "a slice must keep all axes, and its buffer must have constant strides", "T501",
                         help="keep the dropped axes with size 1, and use constant strides")
        made = [stride * step for stride, step in zip(strides, steps, strict=True) if stride is not None]
        starts = [unless_dynamic(start) for start in op.static_offsets.get_values()]
        layout = StridedLayoutAttr(made, offset_of_slice(kind, starts))
        type_ = MemRefType(kind.element_type, part.shape, layout, kind.memory_space)
        return memref.SubviewOp(source, list(op.offsets), list(op.sizes), list(op.strides), op.static_offsets, op.static_sizes,
                                op.static_strides, type_)

    def _convert_constant(self, op: arith.ConstantOp) -> None:
        value = op.value
        if not isinstance(value, DenseIntOrFPElementsAttr) or not value.is_splat():
            raise refuse(op, "a constant tensor must have a single value for all elements", "T501",
                         help="pass the tensor as an argument of the kernel")
        number = next(iter(value.iter_attrs()))
        assert isinstance(number, (IntegerAttr, FloatAttr)), "a splat of numbers"
        scalar = arith.ConstantOp(number)
        self._insert_before(op, scalar)
        room = self._alloc_for(op.result, op)
        self._insert_before(op, hivm.VBrcOp(scalar.result, room))
        self.buffers[op.result] = room

    def _convert_loop(self, loop: scf.ForOp) -> None:
        carried = [index for index, value in enumerate(loop.iter_args) if isinstance(value.type, TensorType)]
        rooms = {}
        for index in carried:
            start = loop.iter_args[index]
            room = self._alloc_for(start, loop)
            if not isinstance(start.owner, tensor.EmptyOp):
                self._insert_before(loop, memref.CopyOp(self._buffer_of(start, loop), room))
            rooms[index] = room
            self.buffers[loop.body.block.args[index + 1]] = room
        self._bufferise_block(loop.body.block)
        last = loop.body.block.last_op
        assert isinstance(last, scf.YieldOp)
        sources = {index: self._buffer_of(last.operands[index], last) for index in carried}
        for index, source in sources.items():
            if source is not rooms[index] and source in rooms.values():  # they change places: by way of another buffer
                between = self._alloc_for(last.operands[index], last)
                self._insert_before(last, memref.CopyOp(source, between))
                sources[index] = between
        for index, source in sources.items():
            if source is not rooms[index]:
                self._insert_before(last, memref.CopyOp(source, rooms[index]))
        if not carried:
            return
        kept = [index for index in range(len(loop.iter_args)) if index not in rooms]
        starts = [loop.iter_args[index] for index in kept]
        yielded = [last.operands[index] for index in kept]
        Rewriter.erase_op(last)
        body = loop.body.detach_block(0)
        made = scf.ForOp(loop.lb, loop.ub, loop.step, starts, body)
        self._insert_before(loop, made)
        end = scf.YieldOp(*yielded)
        body.add_op(end)
        made.attributes.update(loop.attributes)
        for index in carried:
            self.buffers[loop.results[index]] = rooms[index]
        for result, index in zip(made.results, kept, strict=True):
            loop.results[index].replace_all_uses_with(result)
        self.loop_arguments_to_erase.append((body, [index + 1 for index in carried]))
        self.ops_to_erase.append(loop)

    def _convert_branch(self, branch: scf.IfOp) -> None:
        handed = [index for index, value in enumerate(branch.results) if isinstance(value.type, TensorType)]
        rooms = {index: self._alloc_for(branch.results[index], branch) for index in handed}
        regions = [region for region in branch.regions if region.blocks]
        for region in regions:
            self._bufferise_block(region.block)
            last = region.block.last_op
            assert last is not None
            for index in handed:
                self._insert_before(last, memref.CopyOp(self._buffer_of(last.operands[index], last), rooms[index]))
        if not handed:
            return
        kept = [index for index in range(len(branch.results)) if index not in rooms]
        blocks: list[list[Block]] = []
        for region in regions:
            last = region.block.last_op
            assert last is not None
            yielded = [last.operands[index] for index in kept]
            Rewriter.erase_op(last)
            block = region.detach_block(0)
            block.add_op(scf.YieldOp(*yielded))
            blocks.append([block])
        made = scf.IfOp(branch.cond, [branch.results[index].type for index in kept], blocks[0],
                        blocks[1] if len(blocks) > 1 else None)
        self._insert_before(branch, made)
        for index in handed:
            self.buffers[branch.results[index]] = rooms[index]
        for result, index in zip(made.results, kept, strict=True):
            branch.results[index].replace_all_uses_with(result)
        self.ops_to_erase.append(branch)

    def finish(self) -> None:
        """Erase the ops on tensors, users first."""
        for op in reversed(self.ops_to_erase):
            Rewriter.erase_op(op, safe_erase=False)
        for body, places in self.loop_arguments_to_erase:
            for place in reversed(places):
                body.erase_arg(body.args[place], safe_erase=False)
        for op in [op for op in self.function.walk() if isinstance(op, tensor.EmptyOp)]:
            Rewriter.erase_op(op)


@dataclass(frozen=True)
class Bufferise(ModulePass):
    """Bufferises kernels of other tools: rewrites HIVM operations on tensors into HIVM operations on memrefs."""

    name = "bufferise"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in kernels(op):
            one = _FunctionBufferiser(function)
            one.run()
            one.finish()
