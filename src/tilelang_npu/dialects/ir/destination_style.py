"""Ops in destination-passing style, which read inputs (``ins``) and write destinations (``outs``).

An op on memrefs has no result. An op on tensors has one result per destination, of the destination's type.
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
    """Base of the ops in destination-passing style."""

    READS: ClassVar[tuple[str, ...]] = ("src",)
    WRITES: ClassVar[tuple[str, ...]] = ("dst",)

    def ins(self) -> tuple[SSAValue, ...]:
        """Returns the operands that the op reads: buffers, tensors and scalars, but not its temporary buffer."""
        return self.operands_of(self.READS)

    def outs(self) -> tuple[SSAValue, ...]:
        """Returns the operands that the op writes."""
        return self.operands_of(self.out_fields())

    @classmethod
    def out_fields(cls) -> tuple[str, ...]:
        """Returns the names of the operands that are destinations."""
        return cls.WRITES

    def operands_of(self, fields: Sequence[str]) -> tuple[SSAValue, ...]:
        """Returns the operands with the given declared names, in the order of the names."""
        positions, operands = operand_positions(self), self._operands
        return tuple([operands[index] for field in fields for index in positions[field]])

    def on_tensors(self) -> bool:
        """Whether at least one operand of the op is a tensor and none is a memref."""
        types = [operand.type for operand in self.operands]
        return any(isinstance(t, TensorType) for t in types) and not any(isinstance(t, MemRefType) for t in types)

    def on_memrefs(self) -> bool:
        """Whether at least one operand of the op is a memref and none is a tensor."""
        types = [operand.type for operand in self.operands]
        return any(isinstance(t, MemRefType) for t in types) and not any(isinstance(t, TensorType) for t in types)


class StructuredTableOp(TableOp, StructuredOp):
    """Base of the destination-passing ops whose classes :func:`define_op` returns."""

    def group_results(self, results: Sequence[Attribute], operands: Sequence[object]) -> list[Sequence[Attribute]]:
        """Returns one group: ``results`` if it is not empty, else the types of the destinations that are tensors."""
        definition = self.get_irdl_definition()
        if not definition.results:
            return []
        outs: list[Operand] = []
        for (name, _), given in zip(definition.operands, operands, strict=True):
            if name in self.out_fields():
                outs += given if isinstance(given, Sequence) else [given]  # type: ignore[list-item]  # checked by xDSL later
        return [list(results) or results_for(*outs)]


def flatten(operands: SSAValue | Iterable[SSAValue] | None) -> tuple[SSAValue, ...]:
    """Returns the operands of one name as a tuple, whether the name is that of one operand, an optional one, or several."""
    if operands is None:
        return ()
    return (operands,) if isinstance(operands, SSAValue) else tuple(operands)


def results_for(*outs: Operand) -> list[Attribute]:
    """Returns the result types of an op with these destinations: the types of the destinations that are tensors."""
    types = (SSAValue.get(out).type for out in outs)
    return [type_ for type_ in types if isinstance(type_, TensorType)]


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Returns the shape of a value of tensor, memref or vector type.

    Raises:
        VerifyException: the type of the value has no shape.
    """
    if not isinstance(value.type, ShapedType):
        fail(f"needs the number of dimensions of '{value.type}'")
    return value.type.get_shape()


def destination_style(op: StructuredOp) -> None:
    """Verifies that the op has one tensor result per tensor destination, of the destination's type.

    Raises:
        VerifyException: the results do not match, or a destination is neither a ranked tensor nor a ranked memref.
    """
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
