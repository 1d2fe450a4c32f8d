"""Ops in destination-passing style: they read inputs (``ins``) and write destinations (``outs``).

On memrefs such an op has no result. On tensors it has one result per destination, of the destination's type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import MemRefType, ShapedType, TensorType, VectorType
from xdsl.ir import Attribute, SSAValue

from tilelang_npu.dialects.ir.declaration import DialectOp, OfClass, Operand, TableOp, fail
from tilelang_npu.dialects.ir.fields import operand_positions

# The ops and their rules ask for the shapes of such operands, so unranked types are not accepted.
TENSOR_OR_MEMREF = OfClass((MemRefType, TensorType), "Tensor or Memref")
MEMREF = OfClass((MemRefType,), "memref of any type values")
TENSOR = OfClass((TensorType,), "ranked tensor of any type values")
SHAPED = OfClass((MemRefType, TensorType, VectorType), "shaped of any type values")


class StructuredOp(DialectOp):
    """Base of the ops with ``ins`` and ``outs``."""

    READS: ClassVar[tuple[str, ...]] = ("src",)
    WRITES: ClassVar[tuple[str, ...]] = ("dst",)

    def ins(self) -> tuple[SSAValue, ...]:
        """The operands that the op reads: buffers, tensors and scalars, without its temporary buffer."""
        return self.operands_of(self.READS)

    def outs(self) -> tuple[SSAValue, ...]:
        """The operands that the op writes."""
        return self.operands_of(self.out_fields())

    @classmethod
    def out_fields(cls) -> tuple[str, ...]:
        """The fields that are destinations."""
        return cls.WRITES

    def operands_of(self, fields: Sequence[str]) -> tuple[SSAValue, ...]:
        """The operands of some fields, in the order of the fields."""
        positions, operands = operand_positions(self), self._operands
        return tuple([operands[index] for field in fields for index in positions[field]])

    def on_tensors(self) -> bool:
        """Whether the op has operands that are tensors, and none that are memrefs."""
        types = [operand.type for operand in self.operands]
        return any(isinstance(t, TensorType) for t in types) and not any(isinstance(t, MemRefType) for t in types)

    def on_memrefs(self) -> bool:
        """Whether the op has operands that are memrefs, and none that are tensors."""
        types = [operand.type for operand in self.operands]
        return any(isinstance(t, MemRefType) for t in types) and not any(isinstance(t, TensorType) for t in types)


class StructuredTableOp(TableOp, StructuredOp):
    """Base of the ops with ``ins`` and ``outs`` that are rows of a table."""

    def group_results(self, results: Sequence[Attribute], operands: Sequence[object]) -> list[Sequence[Attribute]]:
        """One group: the types of the destinations that are tensors, unless other types are given."""
        definition = self.get_irdl_definition()
        if not definition.results:
            return []
        outs: list[Operand] = []
        for (name, _), given in zip(definition.operands, operands, strict=True):
            if name in self.out_fields():
                outs += given if isinstance(given, Sequence) else [given]  # type: ignore[list-item]  # checked by xDSL later
        return [list(results) or results_for(*outs)]


def flatten(operands: SSAValue | Iterable[SSAValue] | None) -> tuple[SSAValue, ...]:
    """The value of a field of any arity as a tuple: one value, several, or none."""
    if operands is None:
        return ()
    return (operands,) if isinstance(operands, SSAValue) else tuple(operands)


def results_for(*outs: Operand) -> list[Attribute]:
    """The result types of an op with these destinations: the types of those that are tensors."""
    types = (SSAValue.get(out).type for out in outs)
    return [type_ for type_ in types if isinstance(type_, TensorType)]


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a value.

    Raises:
        VerifyException: the type of the value has no shape.
    """
    if not isinstance(value.type, ShapedType):
        fail(f"needs the number of dimensions of '{value.type}'")
    return value.type.get_shape()


def destination_style(op: StructuredOp) -> None:
    """Rule: the op has one tensor result per tensor destination, of the destination's type."""
    tensors: list[tuple[SSAValue, int]] = []
    for out in op.outs():
        if isinstance(out.type, TensorType):
            tensors.append((out, _operand_number(op, out)))
        elif not isinstance(out.type, MemRefType):
            fail(f"expected that operand #{_operand_number(op, out)} is a ranked tensor or a ranked memref")
    results = [result for result in op.results if isinstance(result.type, TensorType)]
    if len(results) != len(tensors):
        fail(f"expected the number of tensor results ({len(results)}) to be equal to the number of output tensors "
             f"({len(tensors)})")
    for (out, index), result in zip(tensors, results, strict=True):
        if out.type != result.type:
            fail(f"expected type of operand #{index} ({out.type}) to match type of corresponding result ({result.type})")


def _operand_number(op: StructuredOp, out: SSAValue) -> int:
    """The number of a destination among the operands. A value that is an input too is the last of its occurrences."""
    return max(place for place, operand in enumerate(op.operands) if operand is out)
