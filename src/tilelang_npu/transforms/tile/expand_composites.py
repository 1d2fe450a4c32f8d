"""Replaces operations that HIVM does not have by sequences of operations that it has.

The pass runs before types are legalised and memories are inferred, so that later passes treat the inserted operations and
buffers like those of the author.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, MemRefType, ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from tilelang_npu import ops
from tilelang_npu.analysis.buffers import root_of, space_of, with_space
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.target import GM
from tilelang_npu.transforms.infra.expand_fills import ExpandTensorFill
from tilelang_npu.transforms.infra.op_builder import float_type
from tilelang_npu.transforms.infra.patterns import apply_patterns, insert_for
from tilelang_npu.transforms.infra.tensor_strips import insert_strip_loops, strip_sizes
from tilelang_npu.transforms.infra.tile_temporaries import temporary


class ExpandComposite(RewritePattern):
    """Replaces a composite operation by the sequence of operations that the operation's entry in the op table lists.

    ::

        tile.elementwise "clamp" ins(%x, %low, %high) outs(%y)
        -> tile.elementwise "max" ins(%x, %low) outs(%y); tile.elementwise "min" ins(%y, %high) outs(%y)

    A composite for which the Vector core has an instruction is not replaced. The destination may be the same buffer as the
    first input: no operation of a sequence reads the first input after an operation of the sequence has written the
    destination. Tests of the op table check this.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.ElementwiseOp, rewriter: PatternRewriter) -> None:
        entry = op.entry()
        if not isinstance(entry, ops.Composite) or _is_one_instruction(op, entry):
            return
        kind = op.target.type
        assert isinstance(kind, MemRefType)
        element = kind.element_type

        def operand(part: str | float) -> SSAValue:
            if isinstance(part, str):
                return values[part]
            number = (IntegerAttr(int(part), element) if isinstance(element, IntegerType)
                      else FloatAttr(part, float_type(element)))
            return insert_for(op, arith.ConstantOp(number), rewriter).result

        values: dict[str, SSAValue] = {"dst": op.target}
        values.update({f"src{position}": value for position, value in enumerate(op.inputs)})
        for step in entry.expansion:
            if step.target not in values:
                values[step.target] = temporary(op, op.target, element, f"{entry.name}_{step.target}")
            made = tile.ElementwiseOp(step.op, [operand(part) for part in step.operands], values[step.target])
            mode = dict(step.clauses).get("round_mode", "rint")
            if step.op == "cast" and mode != "rint":
                made.attributes["round_mode"] = StringAttr(mode)
            insert_for(op, made, rewriter)
        rewriter.erase(op)


def _is_one_instruction(op: tile.ElementwiseOp, entry: ops.Composite) -> bool:
    """Whether the Vector core has an instruction for a composite with these operands.

    All buffers then have the element type and the shape of the destination, and the scalar inputs of the entry are scalars.
    """
    target = op.target.type
    assert isinstance(target, MemRefType)
    if not entry.instruction or dtype_of(target.element_type) not in entry.dtypes:
        return False
    for position, value in enumerate(op.inputs):
        if not isinstance(value.type, MemRefType):
            if position not in entry.scalar:
                return False
        elif position in entry.scalar or (value.type.element_type, value.type.get_shape()) != (
                target.element_type, target.get_shape()):
            return False
    return True


class ExpandAbsoluteReduction(RewritePattern):
    """Replaces a reduction of absolute values by the computation of the absolute values and a plain reduction of these.

    ::

        tile.reduce "reduce_max" absolute ins(%x) outs(%y)
        -> tile.elementwise "abs" ins(%x) outs(%t); tile.reduce "reduce_max" ins(%t) outs(%y)
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.ReduceOp, rewriter: PatternRewriter) -> None:
        if op.absolute is None:
            return
        kind = op.source.type
        assert isinstance(kind, MemRefType)
        absolute = temporary(op, op.source, kind.element_type, "absolute")
        insert_for(op, tile.ElementwiseOp("abs", [op.source], absolute), rewriter)
        insert_for(op, tile.ReduceOp(op.fn.data, absolute, op.target, list(op.dims.get_values()), clear=op.accumulate is None),
                   rewriter)
        rewriter.erase(op)


@dataclass
class ExpandTensorCopy(RewritePattern):
    """Replaces a copy from GM to GM by copies to a tile in UB and from there to GM, because no path leads from GM to GM.

    ::

        tile.copy %X to %Y
        -> scf.for ... { tile.copy (region of %X) to %strip; tile.copy %strip to (region of %Y) }

    The tile has the element type of the source and the size of a strip (:mod:`tilelang_npu.transforms.infra.tensor_strips`).
    Elements beyond the end of the source are padded by the first copy; elements beyond the end of the destination are not
    written by the second one, which also converts the elements.

    Attributes:
        by_hand: whether the author writes the waits between statements. For the author, both copies are one statement, so the
            pattern inserts full barriers around and between them.
    """

    by_hand: bool

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.CopyOp, rewriter: PatternRewriter) -> None:
        if space_of(op.source) != GM or space_of(op.target) != GM:
            return
        kind = op.source.type
        assert isinstance(kind, MemRefType)
        # A size may be known for one of the operands only; the loops are over the operand that has more constant sizes.
        shapes = tile.shape_of(op.source), tile.shape_of(op.target)
        shape = [max(sizes) for sizes in zip(*shapes, strict=True)]
        measured = op.source if list(shapes[0]) == shape else op.target
        sizes = strip_sizes(tile.shape_of(measured), dtype_of(kind.element_type).nbytes)
        label = f"{author_name(root_of(op.source), 'tensor')}_to_{author_name(root_of(op.target), 'tensor')}"
        strip = insert_for(op, tile.AllocOp(label, with_space(MemRefType(kind.element_type, sizes), "ub")), rewriter).result
        self._insert_barrier(op, rewriter)
        offsets, lengths = insert_strip_loops(op, measured, sizes, rewriter)
        if lengths != sizes:
            strip = insert_for(op, tile.RegionOp(strip, [0] * len(sizes), lengths), rewriter).result
        source, target = op.source, op.target
        if tile.shape_of(measured) != tuple(sizes):
            source = insert_for(op, tile.RegionOp(source, offsets, lengths), rewriter).result
            target = insert_for(op, tile.RegionOp(target, offsets, lengths), rewriter).result
        insert_for(op, tile.CopyOp(source, strip, op.pad), rewriter)
        self._insert_barrier(op, rewriter)
        insert_for(op, tile.CopyOp(strip, target), rewriter)
        self._insert_barrier(op, rewriter)
        rewriter.insertion_point = InsertPoint.before(op)
        rewriter.erase(op)

    def _insert_barrier(self, copy: tile.CopyOp, rewriter: PatternRewriter) -> None:
        if self.by_hand:
            insert_for(copy, hivm.PipeBarrierOp("ALL"), rewriter)


@dataclass
class ExpandTensorTransfer(RewritePattern):
    """Replaces a transfer between tensors of two cards by a copy between GM and a tile in UB, and a transfer between this tile
    and the other card.

    ::

        tile.call "shmem_put_nbi" ins(%x, %pe) outs(%y)
        -> scf.for ... { tile.copy (region of %x) to %strip; tile.call "shmem_ub_put_nbi" ins(%strip, %pe) outs(region of %y) }

    A transfer from another card has the two operations in the other order. Strips are those of :class:`ExpandTensorCopy`.

    Attributes:
        by_hand: whether the author writes the waits between statements; full barriers are then inserted around and between the
            two operations, as CANN's function waits itself.
    """

    by_hand: bool

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.CallOp, rewriter: PatternRewriter) -> None:
        entry = op.entry()
        if not isinstance(entry, ops.PeerMove) or not entry.between_tensors:
            return
        (source, rank), (target,) = op.inputs, op.outputs
        kind = source.type
        assert isinstance(kind, MemRefType)
        measured = source if -1 not in tile.shape_of(source) else target
        sizes = strip_sizes(tile.shape_of(measured), dtype_of(kind.element_type).nbytes)
        label = f"{author_name(root_of(source), 'tensor')}_to_{author_name(root_of(target), 'tensor')}"
        strip = insert_for(op, tile.AllocOp(label, with_space(MemRefType(kind.element_type, sizes), "ub")), rewriter).result
        self._insert_barrier(op, rewriter)
        offsets, lengths = insert_strip_loops(op, measured, sizes, rewriter)
        if lengths != sizes:
            strip = insert_for(op, tile.RegionOp(strip, [0], lengths), rewriter).result
        if tile.shape_of(measured) != tuple(sizes):
            source = insert_for(op, tile.RegionOp(source, offsets, lengths), rewriter).result
            target = insert_for(op, tile.RegionOp(target, offsets, lengths), rewriter).result
        first, second = ((tile.CopyOp(source, strip), tile.CallOp(entry.leg, [strip, rank], [target]))
                         if entry.peer == "outputs" else
                         (tile.CallOp(entry.leg, [source, rank], [strip]), tile.CopyOp(strip, target)))
        insert_for(op, first, rewriter)
        self._insert_barrier(op, rewriter)
        insert_for(op, second, rewriter)
        self._insert_barrier(op, rewriter)
        rewriter.insertion_point = InsertPoint.before(op)
        rewriter.erase(op)

    def _insert_barrier(self, call: tile.CallOp, rewriter: PatternRewriter) -> None:
        if self.by_hand:
            insert_for(call, hivm.PipeBarrierOp("ALL"), rewriter)


@dataclass(frozen=True)
class ExpandComposites(ModulePass):
    """Replaces operations that HIVM does not have by sequences of operations that it has.

    Attributes:
        by_hand: whether the author writes the waits between statements; barriers are then inserted around a replaced fill of a
            tensor, around a replaced copy from GM to GM, and around a replaced transfer between tensors of two cards.
    """

    name = "expand-composites"
    by_hand: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, ExpandComposite(), ExpandAbsoluteReduction(), ExpandTensorFill(self.by_hand),
                       ExpandTensorCopy(self.by_hand), ExpandTensorTransfer(self.by_hand),
                       classes=(tile.ElementwiseOp, tile.ReduceOp, tile.FillOp, tile.CopyOp, tile.CallOp))


__all__ = ["ExpandAbsoluteReduction", "ExpandComposite", "ExpandComposites", "ExpandTensorCopy", "ExpandTensorTransfer"]
