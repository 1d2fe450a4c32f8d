"""Rewrite patterns for fills that the Vector core cannot execute: fills of tensors in GM, and fills of scalar storage."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from tilelang_npu.analysis.buffers import root_of, space_of, with_space
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.transforms.infra.patterns import insert_for
from tilelang_npu.transforms.infra.tensor_strips import insert_loop, insert_size, insert_strip_loops, strip_sizes


@dataclass
class ExpandTensorFill(RewritePattern):
    """Replaces a fill of a tensor in GM by copies of a filled tile in UB, because no unit can write a scalar to GM repeatedly.

    The tile has the size of a strip (:mod:`tilelang_npu.transforms.infra.tensor_strips`).

    ::

        tile.fill %v into %X
        -> tile.fill %v into %strip; scf.for ... { tile.copy %strip to (region of %X) }

    Attributes:
        by_hand: whether the author writes the waits between statements. For the author, the fill of the strip and its copies
            are one statement, so the pattern inserts full barriers around and between them.
    """

    by_hand: bool

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.FillOp, rewriter: PatternRewriter) -> None:
        if space_of(op.target) != "gm":
            return
        kind = op.target.type
        assert isinstance(kind, MemRefType)
        sizes = strip_sizes(tile.shape_of(op.target), dtype_of(kind.element_type).nbytes)
        strip = insert_for(op, tile.AllocOp(f"{author_name(root_of(op.target), 'tensor')}_fill",
                                            with_space(MemRefType(kind.element_type, sizes), "ub")), rewriter)
        self._insert_barrier(op, rewriter)
        insert_for(op, tile.FillOp(op.value, strip.result), rewriter)
        self._insert_barrier(op, rewriter)
        offsets, lengths = insert_strip_loops(op, op.target, sizes, rewriter)
        source = strip.result
        if lengths != sizes:
            source = insert_for(op, tile.RegionOp(source, [0] * len(sizes), lengths), rewriter).result
        target = insert_for(op, tile.RegionOp(op.target, offsets, lengths), rewriter).result
        insert_for(op, tile.CopyOp(source, target), rewriter)
        rewriter.insertion_point = InsertPoint.before(op)
        self._insert_barrier(op, rewriter)
        rewriter.erase(op)

    def _insert_barrier(self, fill: tile.FillOp, rewriter: PatternRewriter) -> None:
        if self.by_hand:
            insert_for(fill, hivm.PipeBarrierOp("ALL"), rewriter)


class ExpandScalarStorageFill(RewritePattern):
    """Replaces a fill of scalar storage by a store of each element.

    ::

        tile.fill %v into %local
        -> scf.for %i = ... { memref.store %v, %local[%i] }
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.FillOp, rewriter: PatternRewriter) -> None:
        if space_of(op.target) != "local":
            return
        indices = [insert_loop(op, insert_size(op, op.target, axis, rewriter), 1, rewriter)
                   for axis in range(len(tile.shape_of(op.target)))]
        insert_for(op, memref.StoreOp.get(op.value, op.target, indices), rewriter)
        rewriter.erase(op)


__all__ = ["ExpandScalarStorageFill", "ExpandTensorFill"]
