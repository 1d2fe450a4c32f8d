"""Give every tensor of a foreign kernel a buffer: HIVM on tensors becomes HIVM on memrefs.

An op writes where the toolchain says that it does, into the buffer of its destination, if nobody else reads that; otherwise
into memory of its own, which gets a copy of the destination where the op reads it. Values carried by loops and handed out by
branches have one buffer, into which each of their sources is copied. Buffers get their memories afterwards (``place-buffers``),
copies their ops. Tensors among the arguments of a kernel are refused: who holds their memory, no launcher knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, bufferization, func, memref, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StridedLayoutAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import annotation, hivm
from tilelang_npu.dialects.ir.destination_style import StructuredOp
from tilelang_npu.dialects.mlir.bufferization import MaterializeInDestinationOp, ToTensorOp
from tilelang_npu.dialects.mlir.rules import offset_of_slice, unless_dynamic
from tilelang_npu.transforms.hivm.toolchain_arguments import kernels
from tilelang_npu.transforms.ir.locations import refuse

_RESHAPES: dict[str, type[Operation]] = {
    "tensor.expand_shape": memref.ExpandShapeOp, "tensor.collapse_shape": memref.CollapseShapeOp}


def _defines(op: StructuredOp) -> bool:
    """Whether an op surely writes each element of its destination, and reads none of it."""
    if isinstance(op, (hivm.MmadL1Op, hivm.BatchMmadL1Op)):
        init = op.init_condition.owner
        return isinstance(init, arith.ConstantOp) and isinstance(init.value, IntegerAttr) and init.value.value.data != 0
    return isinstance(op, (hivm.ElementwiseOp, hivm.VBrcOp, hivm.VReduceOp, hivm.VTransposeOp, hivm.VArangeOp, hivm.CopyOp))


def _buffer_type(kind: Attribute) -> MemRefType[Attribute]:
    assert isinstance(kind, TensorType)
    return MemRefType(kind.element_type, kind.shape)


class _Bufferiser:
    """Works through one function in the order of the text."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.borrowed: set[SSAValue] = set()
        """Buffers that are not a value's own: those that ``to_tensor`` reads, and views."""
        self.dead: list[Operation] = []
        """Ops on tensors, which go once all that read them are gone."""
        self.late: list[tuple[Block, list[int]]] = []
        """Arguments of loop bodies that go with them."""

    def run(self) -> None:
        for argument in self.function.body.block.args:
            if isinstance(argument.type, TensorType):
                raise refuse(self.function, "an argument of the kernel is a tensor", "T501",
                             help="take a memref, and read it with bufferization.to_tensor")
        self._block(self.function.body.block)

    def _block(self, block: Block) -> None:
        for op in list(block.ops):
            self._op(op)

    def _op(self, op: Operation) -> None:
        if isinstance(op, scf.ForOp):
            self._loop(op)
        elif isinstance(op, scf.IfOp):
            self._branch(op)
        elif isinstance(op, scf.YieldOp) or not any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
            for region in op.regions:
                for block in region.blocks:
                    self._block(block)
        else:
            self._on_tensors(op)

    def _on_tensors(self, op: Operation) -> None:
        if isinstance(op, tensor.EmptyOp):
            return  # made where it is written
        if isinstance(op, (bufferization.ToTensorOp, ToTensorOp)):
            self.buffers[op.results[0]] = op.operands[0]
            self.borrowed.add(op.operands[0])
        elif isinstance(op, MaterializeInDestinationOp):
            self._materialise(op)
        elif isinstance(op, StructuredOp):
            self._structured(op)
        elif isinstance(op, (annotation.MarkOp, hivm.DebugOp)):
            for index, operand in enumerate(op.operands):
                if isinstance(operand.type, TensorType):
                    op.operands[index] = self._of(operand, op)
            return
        elif op.name in _RESHAPES:
            self._replace(op, _RESHAPES[op.name].create(
                operands=[self._of(op.operands[0], op), *op.operands[1:]], result_types=[_buffer_type(op.results[0].type)],
                properties=dict(op.properties)))
        elif isinstance(op, tensor.ExtractSliceOp):
            self._replace(op, self._slice(op, self._of(op.source, op)))
        elif isinstance(op, tensor.InsertSliceOp):
            target = self._own(op.dest, op, keep=True)
            view = self._slice(op, target)
            self._insert(op, view)
            self._insert(op, memref.CopyOp(self._of(op.source, op), view.results[0]))
            self.buffers[op.results[0]] = target
        elif isinstance(op, tensor.ExtractOp):
            element = memref.LoadOp.get(self._of(op.operands[0], op), list(op.operands[1:]))
            self._insert(op, element)
            op.results[0].replace_all_uses_with(element.res)
        elif isinstance(op, tensor.InsertOp):
            target = self._own(op.operands[1], op, keep=True)
            self._insert(op, memref.StoreOp.get(op.operands[0], target, list(op.operands[2:])))
            self.buffers[op.results[0]] = target
        elif isinstance(op, tensor.DimOp):
            size = memref.DimOp.from_source_and_index(self._of(op.operands[0], op), op.operands[1])
            self._insert(op, size)
            op.results[0].replace_all_uses_with(size.result)
        elif isinstance(op, arith.ConstantOp):
            self._constant(op)
        else:
            raise refuse(op, f"{op.name} on tensors is not among what is given buffers here", "T501",
                         help="lower the module to buffers with the toolchain's passes first")
        self.dead.append(op)

    def _insert(self, before: Operation, made: Operation) -> SSAValue | None:
        made.location = before.location
        Rewriter().insert_op(made, InsertPoint.before(before))
        return made.results[0] if made.results else None

    def _replace(self, op: Operation, made: Operation) -> None:
        self._insert(op, made)
        made.results[0].name_hint = op.results[0].name_hint
        self.buffers[op.results[0]] = made.results[0]
        self.borrowed.add(made.results[0])

    def _of(self, value: SSAValue, user: Operation) -> SSAValue:
        """The buffer of a tensor."""
        if value not in self.buffers:
            if not isinstance(value.owner, tensor.EmptyOp):
                raise refuse(user, "a tensor that nothing here gives a buffer", "T501",
                             help="lower the module to buffers with the toolchain's passes first")
            self.buffers[value] = self._alloc(value, user)
        return self.buffers[value]

    def _alloc(self, value: SSAValue, user: Operation) -> SSAValue:
        kind = _buffer_type(value.type)
        if DYNAMIC_INDEX in kind.get_shape():
            raise refuse(user, f"a buffer of open size, {kind}, has no address before the run", "T501",
                         help="work on a subview of a buffer of the largest size")
        made = self._insert(user, memref.AllocOp([], [], kind))
        assert made is not None
        made.name_hint = value.name_hint
        return made

    def _own(self, dest: SSAValue, user: Operation, *, keep: bool) -> SSAValue:
        """A buffer that an op may write as its destination; with ``keep`` it holds what the destination does."""
        buffer = self.buffers.get(dest)
        users = [use.operation for use in dest.uses]
        own_source = isinstance(user, hivm.ElementwiseOp) and user.ENTRY.in_place
        alone = all(other is user for other in users) and (len(users) == 1 or own_source)
        same_block = isinstance(dest.owner, Operation) and dest.owner.parent_block() is user.parent_block()
        if buffer is not None and alone and same_block and buffer not in self.borrowed:
            return buffer
        made = self._alloc(dest, user)
        if keep and not isinstance(dest.owner, tensor.EmptyOp):
            self._insert(user, memref.CopyOp(self._of(dest, user), made))
        return made

    def _structured(self, op: StructuredOp) -> None:
        outs = op.outs()
        targets: dict[SSAValue, SSAValue] = {}
        to_memory = isinstance(op, (hivm.StoreOp, hivm.FixpipeOp))
        for out in outs:
            if isinstance(out.type, TensorType):
                targets[out] = self._of(out, op) if to_memory else self._own(out, op, keep=not _defines(op))
        names = type(op).get_irdl_definition().operands
        operands: list[Sequence[SSAValue]] = []
        for name, _ in names:
            held = getattr(op, name)
            values = [] if held is None else [held] if isinstance(held, SSAValue) else list(held)
            is_out = bool(values) and all(any(value is out for out in outs) for value in values) and name in type(op).WRITES
            operands.append([targets[value] if is_out and value in targets else
                             self._of(value, op) if isinstance(value.type, TensorType) else value for value in values])
        segments = ("operandSegmentSizes", "resultSegmentSizes")
        properties = {name: value for name, value in op.properties.items() if name not in segments}
        made = type(op).build(operands=operands, result_types=[[] for _ in type(op).get_irdl_definition().results],
                              properties=properties, attributes=dict(op.attributes))
        self._insert(op, made)
        for out, result in zip((out for out in outs if isinstance(out.type, TensorType)), op.results, strict=True):
            self.buffers[result] = targets[out]

    def _materialise(self, op: MaterializeInDestinationOp) -> None:
        target = op.dest if isinstance(op.dest.type, MemRefType) else self._of(op.dest, op)
        source = self._of(op.source, op)
        if source is not target:
            self._insert(op, memref.CopyOp(source, target))
        if op.result is not None:
            self.buffers[op.result] = target

    def _slice(self, op: tensor.ExtractSliceOp | tensor.InsertSliceOp, source: SSAValue) -> memref.SubviewOp:
        kind = source.type
        assert isinstance(kind, MemRefType)
        part = op.results[0].type if isinstance(op, tensor.ExtractSliceOp) else op.source.type
        assert isinstance(part, TensorType)
        strides = kind.get_strides()
        steps = list(op.static_strides.get_values())
        sizes = list(op.static_sizes.get_values())
        if strides is None or None in strides or len(sizes) != len(part.get_shape()) or DYNAMIC_INDEX in steps:
            raise refuse(op, "a slice that drops axes, or of a buffer of open strides", "T501",
                         help="keep the axes, with size 1")
        made = [stride * step for stride, step in zip(strides, steps, strict=True) if stride is not None]
        starts = [unless_dynamic(start) for start in op.static_offsets.get_values()]
        layout = StridedLayoutAttr(made, offset_of_slice(kind, starts))
        type_ = MemRefType(kind.element_type, part.shape, layout, kind.memory_space)
        return memref.SubviewOp(source, list(op.offsets), list(op.sizes), list(op.strides), op.static_offsets, op.static_sizes,
                                op.static_strides, type_)

    def _constant(self, op: arith.ConstantOp) -> None:
        value = op.value
        if not isinstance(value, DenseIntOrFPElementsAttr) or not value.is_splat():
            raise refuse(op, "a constant tensor of several numbers", "T501", help="take it as an argument")
        number: Any = next(iter(value.iter_attrs()))
        scalar = arith.ConstantOp(number)
        self._insert(op, scalar)
        room = self._alloc(op.result, op)
        self._insert(op, hivm.VBrcOp(scalar.result, room))
        self.buffers[op.result] = room

    def _loop(self, loop: scf.ForOp) -> None:
        carried = [index for index, value in enumerate(loop.iter_args) if isinstance(value.type, TensorType)]
        rooms = {}
        for index in carried:
            start = loop.iter_args[index]
            room = self._alloc(start, loop)
            if not isinstance(start.owner, tensor.EmptyOp):
                self._insert(loop, memref.CopyOp(self._of(start, loop), room))
            rooms[index] = room
            self.buffers[loop.body.block.args[index + 1]] = room
        self._block(loop.body.block)
        last = loop.body.block.last_op
        assert isinstance(last, scf.YieldOp)
        sources = {index: self._of(last.operands[index], last) for index in carried}
        for index, source in sources.items():
            if source is not rooms[index] and source in rooms.values():  # they change places: by way of another buffer
                between = self._alloc(last.operands[index], last)
                self._insert(last, memref.CopyOp(source, between))
                sources[index] = between
        for index, source in sources.items():
            if source is not rooms[index]:
                self._insert(last, memref.CopyOp(source, rooms[index]))
        if not carried:
            return
        kept = [index for index in range(len(loop.iter_args)) if index not in rooms]
        starts = [loop.iter_args[index] for index in kept]
        yielded = [last.operands[index] for index in kept]
        Rewriter.erase_op(last)
        body = loop.body.detach_block(0)
        made = scf.ForOp(loop.lb, loop.ub, loop.step, starts, body)
        self._insert(loop, made)
        end = scf.YieldOp(*yielded)
        body.add_op(end)
        made.attributes.update(loop.attributes)
        for index in carried:
            self.buffers[loop.results[index]] = rooms[index]
        for result, index in zip(made.results, kept, strict=True):
            loop.results[index].replace_all_uses_with(result)
        self.late.append((body, [index + 1 for index in carried]))
        self.dead.append(loop)

    def _branch(self, branch: scf.IfOp) -> None:
        handed = [index for index, value in enumerate(branch.results) if isinstance(value.type, TensorType)]
        rooms = {index: self._alloc(branch.results[index], branch) for index in handed}
        regions = [region for region in branch.regions if region.blocks]
        for region in regions:
            self._block(region.block)
            last = region.block.last_op
            assert last is not None
            for index in handed:
                self._insert(last, memref.CopyOp(self._of(last.operands[index], last), rooms[index]))
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
        self._insert(branch, made)
        for index in handed:
            self.buffers[branch.results[index]] = rooms[index]
        for result, index in zip(made.results, kept, strict=True):
            branch.results[index].replace_all_uses_with(result)
        self.dead.append(branch)

    def finish(self) -> None:
        """Remove what worked on tensors, users first."""
        for op in reversed(self.dead):
            Rewriter.erase_op(op, safe_erase=False)
        for body, places in self.late:
            for place in reversed(places):
                body.erase_arg(body.args[place], safe_erase=False)
        for op in [op for op in self.function.walk() if isinstance(op, tensor.EmptyOp)]:
            Rewriter.erase_op(op)


@dataclass(frozen=True)
class Bufferise(ModulePass):
    """The pass; see the module's text."""

    name = "bufferise"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in kernels(op):
            one = _Bufferiser(function)
            one.run()
            one.finish()
