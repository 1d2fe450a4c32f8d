"""Replaces operations whose element type the Vector core does not support by operations on another element type.

A shift of unsigned elements becomes a shift of signed elements in the same bytes. Other operations are computed in a wider
type: the operands are cast to the wider type, and the result is cast back. The wider type of bf16 is f32, because the Vector
core has conversions, comparisons and moves for bf16 but no arithmetic. The result of each operation is rounded to nearest even,
as the toolchain of the npuir dialect does it.

The pass runs after composites are expanded, so that it also rewrites the operations which they are expanded to.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, IntegerType, MemRefType, ModuleOp, UnrealizedConversionCastOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tilelang_npu import ops
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.transforms.infra.op_builder import float_type
from tilelang_npu.transforms.infra.patterns import apply_patterns, insert_for
from tilelang_npu.transforms.infra.tile_temporaries import temporary

_WIDE_TYPES: dict[str, Attribute] = {"float32": Float32Type()}


class ShiftUnsignedAsSigned(RewritePattern):
    """Replaces a shift of unsigned elements by a shift of signed elements in the same bytes.

    ::

        tile.elementwise "bitwise_rshift" ins(%x, %n) outs(%y) {is_signed = false}; (%x, %y : ui16)
        -> %s = tile.view %x to i16; %t = tile.view %y to i16; tile.elementwise "bitwise_rshift" ins(%s, %n) outs(%t) {...}

    The attribute ``is_signed`` is kept; it determines whether a right shift inserts zeros or copies of the sign bit.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.ElementwiseOp, rewriter: PatternRewriter) -> None:
        entry = op.entry()
        signed = ops.seen_as(entry, dtype_of(_computed_element_type(op)))
        if signed is None:
            return
        element = IntegerType(signed.bits)
        inputs = [_as_signed(op, value, element, rewriter) for value in op.inputs]
        made = tile.ElementwiseOp(entry.name, inputs, _as_signed(op, op.target, element, rewriter))
        made.attributes.update(op.attributes)
        insert_for(op, made, rewriter)
        casts = [value.owner for value in op.inputs if isinstance(value.owner, UnrealizedConversionCastOp)]
        rewriter.erase(op)
        for cast in casts:
            if not cast.results[0].uses:
                rewriter.erase(cast)


def _as_signed(op: Operation, value: SSAValue, element: IntegerType, rewriter: PatternRewriter) -> SSAValue:
    """Returns the bits of a buffer or scalar as a signed type of the same width."""
    kind = value.type
    if isinstance(kind, MemRefType):
        view = tile.ViewOp(value, MemRefType(element, kind.shape, kind.layout, kind.memory_space))
        return insert_for(op, view, rewriter).results[0]
    if isinstance(value.owner, UnrealizedConversionCastOp):
        return value.owner.operands[0]
    made: SSAValue = insert_for(op, UnrealizedConversionCastOp.get([value], [element]), rewriter).results[0]
    return made


class WidenElementwise(RewritePattern):
    """Replaces an elementwise operation whose element type the Vector core does not support by the operation in a wider type.

    ::

        tile.elementwise "exp" ins(%x : bf16) outs(%y : bf16)
        -> tile.copy %x to (%w : f32); tile.elementwise "exp" ins(%w) outs(%v : f32); tile.copy %v to %y

    The result of a comparison is not cast back, because its element type does not depend on that of the operands.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.ElementwiseOp, rewriter: PatternRewriter) -> None:
        entry = op.entry()
        if entry.result != "any" and (wide := _wider_type(entry, _computed_element_type(op))) is not None:
            _compute_in(op, wide, rewriter)


class WidenRounding(RewritePattern):
    """Replaces the rounding of f16 or bf16 elements to integral values by that of f32, because the Vector core rounds only f32.

    ::

        tile.elementwise "cast" ins(%x : f16) outs(%y : f16) {round_mode = "floor"}
        -> tile.copy %x to (%w : f32); tile.elementwise "cast" ins(%w) outs(%v : f32) {round_mode = "floor"}; tile.copy %v to %y
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.ElementwiseOp, rewriter: PatternRewriter) -> None:
        element = _computed_element_type(op)
        if op.entry().result == "any" and element == _element_type(op.target) and str(element) in ("f16", "bf16"):
            _compute_in(op, Float32Type(), rewriter)


def _compute_in(op: tile.ElementwiseOp, wide: Attribute, rewriter: PatternRewriter) -> None:
    """Replaces an operation by the same one on operands that are cast to a wider type, and casts the result back."""
    entry, inputs = op.entry(), list(op.inputs)
    widened: dict[SSAValue, SSAValue] = {}
    for position in range(1 if entry.condition else 0, len(inputs)):
        value = inputs[position]
        if value not in widened:
            widened[value] = _widened(op, value, wide, rewriter)
        inputs[position] = widened[value]
    casts_back = entry.result != "bool"
    target = temporary(op, op.target, wide, "wide") if casts_back else op.target
    made = tile.ElementwiseOp(entry.name, inputs, target)
    made.attributes.update(op.attributes)
    insert_for(op, made, rewriter)
    if casts_back:
        insert_for(op, tile.CopyOp(target, op.target), rewriter)
    rewriter.erase(op)


class WidenReduction(RewritePattern):
    """Replaces a reduction that the Vector core does not support by one in a wider type or in the destination's type.

    ::

        tile.reduce "reduce_sum" ins(%x : bf16) outs(%y : bf16)
        -> tile.copy %x to (%w : f32); tile.reduce "reduce_sum" ins(%w) outs(%v : f32); tile.copy %v to %y

    If the reduction accumulates, the destination is cast to the wider type before it. A destination of the wider type is used
    directly.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.ReduceOp, rewriter: PatternRewriter) -> None:
        entry, result_type = op.entry(), _element_type(op.target)
        wide = _wider_type(entry, _element_type(op.source))
        if wide is None:
            if _element_type(op.source) == result_type:
                return
            wide = result_type
        source, target = _widened(op, op.source, wide, rewriter), op.target
        if result_type != wide:
            target = temporary(op, op.target, wide, "wide")
            if op.accumulate is not None:
                insert_for(op, tile.CopyOp(op.target, target), rewriter)
        insert_for(op, tile.ReduceOp(entry.name, source, target, list(op.dims.get_values()), clear=op.accumulate is None),
                   rewriter)
        if result_type != wide:
            insert_for(op, tile.CopyOp(target, op.target), rewriter)
        rewriter.erase(op)


def _computed_element_type(op: tile.ElementwiseOp) -> Attribute:
    """Returns the element type of the buffers that an operation computes with; a condition is not one of them."""
    inputs = op.inputs[1 if op.entry().condition else 0:]
    return _element_type(next((value for value in inputs if isinstance(value.type, MemRefType)), op.target))


def _element_type(value: SSAValue) -> Attribute:
    kind = value.type
    return kind.element_type if isinstance(kind, MemRefType) else kind


def _wider_type(entry: ops.Operation, element: Attribute) -> Attribute | None:
    """Returns the wider type in which an operation has to be computed; None if the entry has the type, or no wider one."""
    kind = dtype_of(element)
    wide = ops.computed_in(entry, kind)
    return None if wide is None or wide == kind else _WIDE_TYPES[str(wide)]


def _widened(op: Operation, value: SSAValue, wide: Attribute, rewriter: PatternRewriter) -> SSAValue:
    """Inserts a cast of a buffer, into a temporary, or of a scalar."""
    if not isinstance(value.type, MemRefType):
        return insert_for(op, arith.ExtFOp(value, float_type(wide)), rewriter).result
    place = temporary(op, value, wide, "wide")
    insert_for(op, tile.CopyOp(value, place), rewriter)
    return place


@dataclass(frozen=True)
class LegaliseTypes(ModulePass):
    """Replaces operations whose element type the Vector core does not support by operations on another element type."""

    name = "legalise-types"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, ShiftUnsignedAsSigned(), WidenElementwise(), WidenRounding(), WidenReduction(),
                       classes=(tile.ElementwiseOp, tile.ReduceOp))


__all__ = ["LegaliseTypes", "ShiftUnsignedAsSigned", "WidenElementwise", "WidenReduction", "WidenRounding"]
