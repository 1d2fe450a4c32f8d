"""Assigns a memory to each buffer of another tool's kernel, and rewrites ``memref.copy`` into the operation for the two
memories.

Arguments of the kernel are in global memory (GM), operands of the matrix unit in L1, results of the matrix unit in L0C, and all
other buffers in UB; this is the rule of AscendNPU-IR's infer-mem-scope. A view is in the memory of its source. A vector
operation on GM is rewritten to use buffers in UB, with loads before and stores after the operation. A vector operation that
reads L0C reads the data from a workspace in GM instead. Operands of the matrix unit that are in GM are loaded into buffers in
L1. Runs after bufferisation and before memory planning.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, MemRefType, ModuleOp, StridedLayoutAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.buffers import with_space
from tilelang_npu.analysis.locations import refuse
from tilelang_npu.analysis.toolchain_arguments import kernels
from tilelang_npu.analysis.view_chains import VIEWS, root_of
from tilelang_npu.dialects import hivm, memref_ext
from tilelang_npu.dialects.ir.destination_style import StructuredOp
from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.dialects.mlir.rules import offset_of_slice
from tilelang_npu.target.chip_data import Space


def _has_no_space(value: SSAValue) -> bool:
    """Whether a value is a memref without a memory."""
    return isinstance(value.type, MemRefType) and hivm.space_of(value.type) is None


def _set_space(value: SSAValue, space: Space) -> None:
    assert isinstance(value.type, MemRefType)
    Rewriter.replace_value_with_new_type(value, with_space(value.type, space))


class _Placer:
    """Places the buffers of one function."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function

    def run(self) -> None:
        self._refuse_chosen_buffers()
        body = self.function.body.block
        for argument in body.args:
            if _has_no_space(argument):
                _set_space(argument, "gm")
        self.function.properties["function_type"] = FunctionType.from_lists(
            [argument.type for argument in body.args], list(self.function.function_type.outputs.data))
        wanted: dict[SSAValue, Space] = {}
        for op in self.function.walk():
            if isinstance(op, (hivm.MmadL1Op, hivm.BatchMmadL1Op)):
                wanted.update({root_of(op.a): "cbuf", root_of(op.b): "cbuf", root_of(op.c): "cc"})
        for op in list(self.function.walk()):
            if isinstance(op, memref.AllocOp) and _has_no_space(op.memref):
                _set_space(op.memref, wanted.get(op.memref, "ub"))
            elif isinstance(op, memref_ext.AllocWorkspaceOp) and _has_no_space(op.results[0]):
                _set_space(op.results[0], "gm")
            elif isinstance(op, (*VIEWS, arith.SelectOp)) and _has_no_space(op.results[0]):
                source = op.operands[1 if isinstance(op, arith.SelectOp) else 0]
                space = hivm.space_of(source.type)
                if space is not None:
                    _set_space(op.results[0], space)
        for op in list(self.function.walk()):
            if isinstance(op, memref.CopyOp):
                self._convert_copy(op)
            elif isinstance(op, (hivm.MmadL1Op, hivm.BatchMmadL1Op)):
                self._load_operands(op)
            elif isinstance(op, StructuredOp) and "V" in op.pipes():
                self._stage_in_ub(op)

    def _refuse_chosen_buffers(self) -> None:
        """Refuse a buffer that a branch or a loop yields: it cannot be followed."""
        for op in self.function.walk():
            if isinstance(op, (scf.IfOp, scf.ForOp, scf.WhileOp)) and any(isinstance(v.type, MemRefType) for v in op.results):
                raise refuse(op, f"{op.name} returns a buffer, whose memory is only known at run time", "T508",
                             help="copy the data into one common buffer in each branch or iteration")

    def _convert_copy(self, op: memref.CopyOp) -> None:
        source, target = op.source, op.destination
        spaces = (hivm.space_of(source.type), hivm.space_of(target.type))
        made: Operation
        if spaces == ("gm", "ub"):
            made = hivm.LoadOp(source, target)
        elif spaces == ("ub", "gm"):
            made = hivm.StoreOp(source, target)
        elif spaces == ("gm", "cbuf"):
            made = _load_to_l1(source, target)
        elif spaces == ("cc", "gm"):
            for part in _drain_ops(source, target):
                self._insert_before(op, part)
            Rewriter.erase_op(op)
            return
        elif spaces == ("gm", "gm"):
            room = self._alloc_like(op, source)
            self._insert_before(op, hivm.LoadOp(source, room))
            made = hivm.StoreOp(room, target)
        elif spaces == ("ub", "ub"):
            made = hivm.CopyOp(source, target)
        else:
            raise refuse(op, f"no operation copies from {spaces[0]} to {spaces[1]}", "T501",
                         help="write hivm.hir.fixpipe or hivm.hir.nd2nz instead of memref.copy, or copy through a buffer in UB")
        made.location = op.location
        Rewriter().replace_op(op, made, [])

    def _stage_in_ub(self, op: StructuredOp) -> None:
        """Makes a vector operation use buffers in UB instead of global memory: data is loaded before the operation, and results
        are stored after it.
        """
        if isinstance(op, (hivm.LoadOp, hivm.StoreOp, hivm.CopyOp)):
            return
        for access in list(accesses(op)):
            value = access.value
            space = hivm.space_of(value.type)
            if space == "cc" and not access.writes:
                value = self._through_workspace(op, value)
            elif space != "gm":
                if space != "ub":
                    raise refuse(op, f"a vector operation uses a buffer in {space}, where the matrix unit needs it", "T501",
                                 help="use two buffers, one for the matrix unit and one for the vector operation")
                continue
            room = self._alloc_like(op, value)
            for index, operand in enumerate(op.operands):
                if operand is access.value:
                    op.operands[index] = room
            if access.reads or not access.writes:
                self._insert_before(op, hivm.LoadOp(value, room))
            if access.writes:
                store = hivm.StoreOp(room, value)
                store.location = op.location
                Rewriter().insert_op(store, InsertPoint.after(op))

    def _load_operands(self, op: hivm.MmadL1Op | hivm.BatchMmadL1Op) -> None:
        """Load the matrix unit's operands from global memory into L1."""
        for index, operand in enumerate((op.a, op.b)):
            if hivm.space_of(operand.type) != "gm":
                continue
            kind = operand.type
            assert isinstance(kind, MemRefType)
            if DYNAMIC_INDEX in kind.get_shape():
                raise refuse(op, "a matrix product has an operand of dynamic size in global memory", "T501",
                             help="load the operand into a buffer in L1")
            room = memref.AllocOp([], [], MemRefType(kind.element_type, kind.shape, memory_space=hivm.address_space("cbuf")))
            self._insert_before(op, room)
            self._insert_before(op, _load_to_l1(operand, room.memref))
            op.operands[index] = room.memref

    def _through_workspace(self, op: Operation, source: SSAValue) -> SSAValue:
        """Returns a workspace with the contents of a buffer in L0C: Vector cores cannot read L0C itself."""
        kind = source.type
        assert isinstance(kind, MemRefType)
        made = memref_ext.AllocWorkspaceOp(MemRefType(kind.element_type, kind.shape, memory_space=hivm.address_space("gm")))
        self._insert_before(op, made)
        for part in _drain_ops(source, made.results[0]):
            self._insert_before(op, part)
        return made.results[0]

    def _alloc_like(self, op: Operation, like: SSAValue) -> SSAValue:
        kind = like.type
        assert isinstance(kind, MemRefType)
        if DYNAMIC_INDEX in kind.get_shape():
            raise refuse(op, "a vector operation uses a memref of dynamic size in global memory", "T501",
                         help="load the data into a buffer in UB")
        made = memref.AllocOp([], [], _ub_type(kind))
        self._insert_before(op, made)
        return made.memref

    @staticmethod
    def _insert_before(op: Operation, made: Operation) -> None:
        made.location = op.location
        Rewriter().insert_op(made, InsertPoint.before(op))


def _drain_ops(source: SSAValue, target: SSAValue) -> list[Operation]:
    """Returns the ops that move L0C to global memory: FIX moves one matrix at a time, so one op for each of a batch."""
    kind = source.type
    assert isinstance(kind, MemRefType)
    if kind.get_num_dims() != 3:
        return [hivm.FixpipeOp(source, target, dma_mode="nz2nd")]
    made: list[Operation] = []
    for number in range(kind.get_shape()[0]):
        parts = [_matrix_of_batch(value, number) for value in (source, target)]
        made += [*parts, hivm.FixpipeOp(*(part.result for part in parts), dma_mode="nz2nd")]
    return made


def _matrix_of_batch(batch: SSAValue, number: int) -> memref.SubviewOp:
    """Returns one matrix of a batch."""
    kind = batch.type
    assert isinstance(kind, MemRefType)
    shape, strides = list(kind.get_shape()), list(kind.get_strides() or [None] * 3)
    layout = StridedLayoutAttr(strides[1:], offset_of_slice(kind, [number, 0, 0]))
    made = MemRefType(kind.element_type, shape[1:], layout, kind.memory_space)
    return memref.SubviewOp.get(batch, [number, 0, 0], [1, *shape[1:]], [1, 1, 1], made)


def _load_to_l1(source: SSAValue, target: SSAValue) -> Operation:
    """Returns a load into L1, whose matrices are in fractals if their buffer has four axes."""
    assert isinstance(target.type, MemRefType)
    return hivm.Nd2NzOp(source, target) if target.type.get_num_dims() == 4 else hivm.LoadOp(source, target)


def _ub_type(kind: MemRefType[Attribute]) -> MemRefType[Attribute]:
    return MemRefType(kind.element_type, kind.shape, memory_space=hivm.address_space("ub"))


@dataclass(frozen=True)
class PlaceBuffers(ModulePass):
    """Assigns a memory to each buffer of another tool's kernel, and rewrites copies into the operations for these memories."""

    name = "place-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in kernels(op):
            _Placer(function).run()
