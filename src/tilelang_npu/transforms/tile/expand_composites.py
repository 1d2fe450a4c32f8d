"""Write each composite operation in the entries of the table that its own entry names, but for those that are an instruction.

A reduction of absolute values is one of a temporary that holds them, and a fill of a tensor is copies of a filled tile in UB.

Runs before types are legalised and memories inferred, so that what it makes is treated like what the kernel says. The
destination may be the first input: an expansion reads its first input for the last time before, or in, the step that first
writes the destination, which the table's tests check.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, MemRefType, ModuleOp, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu import ops
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.transforms.ir.emit import float_type
from tilelang_npu.transforms.tile.expanded_fills import expand_tensor_fill, is_tensor_fill
from tilelang_npu.transforms.tile.tile_temporaries import insert_before, temporary


def _number(op: tile.ElementwiseOp, value: float, element: Attribute) -> SSAValue:
    attribute = (IntegerAttr(int(value), element) if isinstance(element, IntegerType)
                 else FloatAttr(value, float_type(element)))
    return insert_before(op, arith.ConstantOp(attribute)).results[0]


def _is_instruction(op: tile.ElementwiseOp, entry: ops.Composite) -> bool:
    """Whether the Vector unit does all of it at once."""
    target = op.target.type
    assert isinstance(target, MemRefType)
    alike = target.element_type, target.get_shape()
    return entry.instruction and dtype_of(target.element_type) in entry.dtypes and all(
        (value.type.element_type, value.type.get_shape()) == alike and position not in entry.scalar
        if isinstance(value.type, MemRefType) else position in entry.scalar for position, value in enumerate(op.inputs))


def _expand(op: tile.ElementwiseOp, entry: ops.Composite) -> None:
    kind = op.target.type
    assert isinstance(kind, MemRefType)
    element = kind.element_type
    values: dict[str, SSAValue] = {"dst": op.target}
    values.update({f"src{position}": value for position, value in enumerate(op.inputs)})
    for step in entry.expansion:
        if step.target not in values:
            values[step.target] = temporary(op, op.target, element, f"{entry.name}_{step.target}")
        operands = [values[part] if isinstance(part, str) else _number(op, part, element) for part in step.operands]
        if step.op == "cast":
            mode = dict(step.clauses).get("round_mode", "rint")
            made = tile.ElementwiseOp("cast", operands, values[step.target])
            if mode != "rint":
                made.attributes["round_mode"] = StringAttr(mode)
            insert_before(op, made)
        else:
            insert_before(op, tile.ElementwiseOp(step.op, operands, values[step.target]))
    Rewriter.erase_op(op)


def _of_absolutes(op: tile.ReduceOp) -> None:
    kind = op.source.type
    assert isinstance(kind, MemRefType)
    absolute = temporary(op, op.source, kind.element_type, "absolute")
    insert_before(op, tile.ElementwiseOp("abs", [op.source], absolute))
    insert_before(op, tile.ReduceOp(op.fn.data, absolute, op.target, list(op.dims.get_values()), clear=op.accumulate is None))
    Rewriter.erase_op(op)


@dataclass(frozen=True)
class ExpandComposites(ModulePass):
    """The pass; see the module's text.

    Attributes:
        by_hand: whether the author sets the waits between statements.
    """

    name = "expand-composites"
    by_hand: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [found for found in op.walk() if isinstance(found, tile.ElementwiseOp)]:
            entry = inner.entry()
            if isinstance(entry, ops.Composite) and not _is_instruction(inner, entry):
                _expand(inner, entry)
        for reduction in [found for found in op.walk() if isinstance(found, tile.ReduceOp) and found.absolute is not None]:
            _of_absolutes(reduction)
        for fill in [found for found in op.walk() if isinstance(found, tile.FillOp) and is_tensor_fill(found)]:
            expand_tensor_fill(fill, by_hand=self.by_hand)
