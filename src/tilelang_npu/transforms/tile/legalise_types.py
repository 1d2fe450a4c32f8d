"""Compute in another type where the Vector core has no operation for the element type.

Shifts of unsigned elements work on the same bytes seen as signed ones. All else is computed in a wider type: cast, operate,
cast back.

bf16 has conversions, comparisons and moves but no arithmetic: it is computed in f32 and rounded to nearest even after each
operation, as the toolchain of the npuir dialect does. Runs after composites are expanded, so every operation is seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, IntegerType, MemRefType, ModuleOp, UnrealizedConversionCastOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu import ops
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.ops import DType
from tilelang_npu.transforms.ir.emit import float_type
from tilelang_npu.transforms.tile.tile_temporaries import insert_before, temporary

_TYPES: dict[str, Attribute] = {"float32": Float32Type()}


def _element(value: SSAValue) -> Attribute:
    kind = value.type
    return kind.element_type if isinstance(kind, MemRefType) else kind


def _wider(entry: ops.Operation, element: Attribute) -> Attribute | None:
    """The type to compute in, or None where the entry has the element type, or no wider one."""
    kind = dtype_of(element)
    found = ops.computed_in(entry, kind)
    return None if found is None or found == kind else _TYPES[str(found)]


def _widened(op: Operation, value: SSAValue, wide: Attribute) -> SSAValue:
    if not isinstance(value.type, MemRefType):
        return insert_before(op, arith.ExtFOp(value, float_type(wide))).results[0]
    place = temporary(op, value, wide, "wide")
    insert_before(op, tile.CopyOp(value, place))
    return place


def _as_signed(op: Operation, value: SSAValue, signed: DType) -> SSAValue:
    """The same bits as a signed type of the same width."""
    element = IntegerType(signed.bits)
    kind = value.type
    if isinstance(kind, MemRefType):
        return insert_before(op, tile.ViewOp(value, MemRefType(element, kind.shape, kind.layout, kind.memory_space))).results[0]
    if isinstance(value.owner, UnrealizedConversionCastOp):
        return value.owner.operands[0]
    return insert_before(op, UnrealizedConversionCastOp.get([value], [element])).results[0]


def _elementwise(op: tile.ElementwiseOp) -> None:
    entry = op.entry()
    first = 1 if entry.condition else 0
    typed = next((value for value in op.inputs[first:] if isinstance(value.type, MemRefType)), op.target)
    signed = ops.seen_as(entry, dtype_of(_element(typed)))
    if signed is not None:
        made = tile.ElementwiseOp(entry.name, [_as_signed(op, value, signed) for value in op.inputs],
                                  _as_signed(op, op.target, signed))
        made.attributes.update(op.attributes)
        insert_before(op, made)
        casts = [value.owner for value in op.inputs if isinstance(value.owner, UnrealizedConversionCastOp)]
        Rewriter.erase_op(op)
        for cast in casts:
            if not cast.results[0].uses:
                Rewriter.erase_op(cast)
        return
    wide = _wider(entry, _element(typed))
    if entry.result == "any":  # a conversion; only rounding within a narrow type has to be widened
        narrow = _element(typed) == _element(op.target) and str(_element(typed)) in ("f16", "bf16")
        wide = Float32Type() if narrow else None
    if wide is None:
        return
    seen: dict[SSAValue, SSAValue] = {}
    inputs = list(op.inputs)
    for position in range(first, len(inputs)):
        value = inputs[position]
        if value not in seen:
            seen[value] = _widened(op, value, wide)
        inputs[position] = seen[value]
    back = entry.result != "bool"
    target = temporary(op, op.target, wide, "wide") if back else op.target
    made = tile.ElementwiseOp(entry.name, inputs, target)
    made.attributes.update(op.attributes)
    insert_before(op, made)
    if back:
        insert_before(op, tile.CopyOp(target, op.target))
    Rewriter.erase_op(op)


def _reduce(op: tile.ReduceOp) -> None:
    entry = op.entry()
    wide = _wider(entry, _element(op.source))
    if wide is None and _element(op.source) != _element(op.target):
        wide = _element(op.target)
    if wide is None:
        return
    source = _widened(op, op.source, wide)
    narrow = _element(op.target) != wide
    target = op.target
    if narrow:
        target = temporary(op, op.target, wide, "wide")
        if op.accumulate is not None:
            insert_before(op, tile.CopyOp(op.target, target))
    insert_before(op, tile.ReduceOp(entry.name, source, target, list(op.dims.get_values()), clear=op.accumulate is None))
    if narrow:
        insert_before(op, tile.CopyOp(target, op.target))
    Rewriter.erase_op(op)


@dataclass(frozen=True)
class LegaliseTypes(ModulePass):
    """The pass; see the module's text."""

    name = "legalise-types"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, tile.ElementwiseOp):
                _elementwise(inner)
            elif isinstance(inner, tile.ReduceOp):
                _reduce(inner)
