"""Say in which memory each buffer of a foreign kernel is, and which op moves its data there.

Arguments of a kernel are in global memory; what the matrix unit reads is in L1, what it writes in L0C; all else is in UB (the
rule of AscendNPU-IR's infer-mem-scope). Views are where their source is. ``memref.copy`` becomes the op that moves between the
two memories. Vector work on global memory gets buffers in UB, and loads and stores around; what it reads of L0C goes by way of
a workspace; the matrix unit's operands in global memory get buffers in L1. Runs on buffers, before planning.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, MemRefType, ModuleOp, StridedLayoutAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import hivm, memref_ext
from tilelang_npu.dialects.ir.destination_style import StructuredOp
from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.dialects.mlir.rules import offset_of_slice
from tilelang_npu.transforms.hivm.toolchain_arguments import kernels
from tilelang_npu.transforms.ir.buffers import with_space
from tilelang_npu.transforms.ir.lifetimes import root_of
from tilelang_npu.transforms.ir.locations import refuse

_VIEWS = (memref.SubviewOp, memref.ReinterpretCastOp, memref.CastOp, memref.ExpandShapeOp, memref.CollapseShapeOp,
          memref.ViewOp, hivm.BitcastOp)


def _open(value: SSAValue) -> bool:
    """Whether a memref does not say where it is."""
    return isinstance(value.type, MemRefType) and hivm.space_of(value.type) is None


def _put(value: SSAValue, space: str) -> None:
    assert isinstance(value.type, MemRefType)
    Rewriter.replace_value_with_new_type(value, with_space(value.type, space))


class _Placer:
    """Places the buffers of one function."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function

    def run(self) -> None:
        self._check()
        body = self.function.body.block
        for argument in body.args:
            if _open(argument):
                _put(argument, "gm")
        self.function.properties["function_type"] = FunctionType.from_lists(
            [argument.type for argument in body.args], list(self.function.function_type.outputs.data))
        wanted: dict[SSAValue, str] = {}
        for op in self.function.walk():
            if isinstance(op, (hivm.MmadL1Op, hivm.BatchMmadL1Op)):
                wanted.update({root_of(op.a): "cbuf", root_of(op.b): "cbuf", root_of(op.c): "cc"})
        for op in list(self.function.walk()):
            if isinstance(op, memref.AllocOp) and _open(op.memref):
                _put(op.memref, wanted.get(op.memref, "ub"))
            elif isinstance(op, memref_ext.AllocWorkspaceOp) and _open(op.results[0]):
                _put(op.results[0], "gm")
            elif isinstance(op, (*_VIEWS, arith.SelectOp)) and _open(op.results[0]):
                source = op.operands[1 if isinstance(op, arith.SelectOp) else 0]
                space = hivm.space_of(source.type)
                if space is not None:
                    _put(op.results[0], space)
        for op in list(self.function.walk()):
            if isinstance(op, memref.CopyOp):
                self._move(op)
            elif isinstance(op, (hivm.MmadL1Op, hivm.BatchMmadL1Op)):
                self._feed(op)
            elif isinstance(op, StructuredOp) and "V" in op.pipes():
                self._stage(op)

    def _check(self) -> None:
        """A buffer that a branch or a loop chooses cannot be followed."""
        for op in self.function.walk():
            if isinstance(op, (scf.IfOp, scf.ForOp, scf.WhileOp)) and any(isinstance(v.type, MemRefType) for v in op.results):
                raise refuse(op, f"{op.name} hands out a buffer, and its memory cannot be planned here", "T508",
                             help="copy into one buffer in each branch")

    def _move(self, op: memref.CopyOp) -> None:
        source, target = op.source, op.destination
        spaces = (hivm.space_of(source.type), hivm.space_of(target.type))
        made: Operation
        if spaces == ("gm", "ub"):
            made = hivm.LoadOp(source, target)
        elif spaces == ("ub", "gm"):
            made = hivm.StoreOp(source, target)
        elif spaces == ("gm", "cbuf"):
            made = _to_l1(source, target)
        elif spaces == ("cc", "gm"):
            for part in _drained(source, target):
                self._before(op, part)
            Rewriter.erase_op(op)
            return
        elif spaces == ("gm", "gm"):
            room = self._room(op, source)
            self._before(op, hivm.LoadOp(source, room))
            made = hivm.StoreOp(room, target)
        elif spaces == ("ub", "ub"):
            made = hivm.CopyOp(source, target)
        else:
            raise refuse(op, f"no op copies from {spaces[0]} to {spaces[1]}", "T501",
                         help="write fixpipe, nd2nz or the copy by way of UB")
        made.location = op.location
        Rewriter().replace_op(op, made, [])

    def _stage(self, op: StructuredOp) -> None:
        """Vector work reads and writes UB: what is in global memory is loaded before and stored behind."""
        if isinstance(op, (hivm.LoadOp, hivm.StoreOp, hivm.CopyOp)):
            return
        for access in list(accesses(op)):
            value = access.value
            space = hivm.space_of(value.type)
            if space == "cc" and not access.writes:
                value = self._through_workspace(op, value)
            elif space != "gm":
                if space != "ub":
                    raise refuse(op, f"vector work in the memory {space} of a buffer that the matrix unit uses", "T501",
                                 help="give the matrix unit a buffer of its own")
                continue
            room = self._room(op, value)
            for index, operand in enumerate(op.operands):
                if operand is access.value:
                    op.operands[index] = room
            if access.reads or not access.writes:
                self._before(op, hivm.LoadOp(value, room))
            if access.writes:
                behind = hivm.StoreOp(room, value)
                behind.location = op.location
                Rewriter().insert_op(behind, InsertPoint.after(op))

    def _feed(self, op: hivm.MmadL1Op | hivm.BatchMmadL1Op) -> None:
        """The matrix unit reads L1."""
        for index, operand in enumerate((op.a, op.b)):
            if hivm.space_of(operand.type) != "gm":
                continue
            kind = operand.type
            assert isinstance(kind, MemRefType)
            if DYNAMIC_INDEX in kind.get_shape():
                raise refuse(op, "a product of operands of open size in global memory", "T501", help="load them into buffers")
            room = memref.AllocOp([], [], MemRefType(kind.element_type, kind.shape, memory_space=hivm.address_space("cbuf")))
            self._before(op, room)
            self._before(op, _to_l1(operand, room.memref))
            op.operands[index] = room.memref

    def _through_workspace(self, op: Operation, source: SSAValue) -> SSAValue:
        """What is in L0C, in global memory of the block's own: Vector cores read nothing else of it."""
        kind = source.type
        assert isinstance(kind, MemRefType)
        made = memref_ext.AllocWorkspaceOp(MemRefType(kind.element_type, kind.shape, memory_space=hivm.address_space("gm")))
        self._before(op, made)
        for part in _drained(source, made.results[0]):
            self._before(op, part)
        return made.results[0]

    def _room(self, op: Operation, like: SSAValue) -> SSAValue:
        kind = like.type
        assert isinstance(kind, MemRefType)
        if DYNAMIC_INDEX in kind.get_shape():
            raise refuse(op, "vector work on global memory of open size", "T501", help="load it into a buffer of UB")
        made = memref.AllocOp([], [], _packed(kind))
        self._before(op, made)
        return made.memref

    @staticmethod
    def _before(op: Operation, made: Operation) -> None:
        made.location = op.location
        Rewriter().insert_op(made, InsertPoint.before(op))


def _drained(source: SSAValue, target: SSAValue) -> list[Operation]:
    """L0C to global memory: FIX takes one matrix at a time, of a batch each in turn."""
    kind = source.type
    assert isinstance(kind, MemRefType)
    if kind.get_num_dims() != 3:
        return [hivm.FixpipeOp(source, target, dma_mode="nz2nd")]
    made: list[Operation] = []
    for number in range(kind.get_shape()[0]):
        parts = [_matrix(value, number) for value in (source, target)]
        made += [*parts, hivm.FixpipeOp(*(part.result for part in parts), dma_mode="nz2nd")]
    return made


def _matrix(batch: SSAValue, number: int) -> memref.SubviewOp:
    """One matrix of a batch."""
    kind = batch.type
    assert isinstance(kind, MemRefType)
    shape, strides = list(kind.get_shape()), list(kind.get_strides() or [None] * 3)
    layout = StridedLayoutAttr(strides[1:], offset_of_slice(kind, [number, 0, 0]))
    made = MemRefType(kind.element_type, shape[1:], layout, kind.memory_space)
    return memref.SubviewOp.get(batch, [number, 0, 0], [1, *shape[1:]], [1, 1, 1], made)


def _to_l1(source: SSAValue, target: SSAValue) -> Operation:
    """A load into L1, whose matrices are in fractals where their buffer has four axes."""
    assert isinstance(target.type, MemRefType)
    return hivm.Nd2NzOp(source, target) if target.type.get_num_dims() == 4 else hivm.LoadOp(source, target)


def _packed(kind: MemRefType[Attribute]) -> MemRefType[Attribute]:
    return MemRefType(kind.element_type, kind.shape, memory_space=hivm.address_space("ub"))


@dataclass(frozen=True)
class PlaceBuffers(ModulePass):
    """The pass; see the module's text."""

    name = "place-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in kernels(op):
            _Placer(function).run()
