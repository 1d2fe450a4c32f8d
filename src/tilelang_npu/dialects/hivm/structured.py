"""Ops that read some buffers or tensors and write others, and what the toolchain verifies of all of them.

Such an op names its inputs (``ins``) and its destinations (``outs``). On memrefs it has no result; on tensors it has one
result per destination, of the destination's type. A *rule* here is a trait of AscendNPU-IR's ODS with the words of its
message; ops list the ones they have, and they are checked in that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IntegerType,
    MemRefType,
    ShapedType,
    Signedness,
    TensorType,
    VectorType,
    bf16,
    f8E4M3FN,
    f8E5M2,
    f16,
    f32,
    f64,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from tilelang_npu.dialects import hacc
from tilelang_npu.dialects.ir.declaration import DialectOp, OfClass, Rule, element_type
from tilelang_npu.dialects.ir.fields import integers_in, places
from tilelang_npu.target.dtypes import DType, dtype

# An op that works on data reads its shape: no type without a rank fits any of these.
TENSOR_OR_MEMREF = OfClass((MemRefType, TensorType), "Tensor or Memref")
MEMREF = OfClass((MemRefType,), "memref of any type values")
TENSOR = OfClass((TensorType,), "ranked tensor of any type values")
SHAPED = OfClass((MemRefType, TensorType, VectorType), "shaped of any type values")

I64_ARRAY = DenseArrayBase.constr(i64)
NO_AXES = DenseArrayBase.from_list(i64, [])

_FLOATS = {"f16": f16, "bf16": bf16, "f32": f32, "f64": f64, "f8E4M3FN": f8E4M3FN, "f8E5M2": f8E5M2}
_SUMMARIES = {"f16": "16-bit float", "f32": "32-bit float", "bf16": "bfloat16 type", "f64": "64-bit float"}
FP8 = (f8E4M3FN, f8E5M2)


def mlir_type(spelling: DType | str) -> Attribute:
    """The builtin MLIR type of an element type: ``f16``, ``i8``, ``ui8`` ..."""
    name = dtype(spelling).mlir
    if name in _FLOATS:
        return _FLOATS[name]
    if name.startswith("u"):
        return IntegerType(int(name[2:]), Signedness.UNSIGNED)
    return IntegerType(int(name[1:]))


def dtypes(*names: str) -> tuple[DType, ...]:
    """Element types by their MLIR names."""
    return tuple(dtype(name) for name in names)


def _summary(element: DType) -> str:
    name = element.mlir
    if name in _SUMMARIES:
        return _SUMMARIES[name]
    if name.startswith("f"):
        return f"{name} type"
    return f"{element.bits}-bit {'unsigned' if name.startswith('u') else 'signless'} integer"


class StructuredOp(DialectOp):
    """Base of the ops with ``ins`` and ``outs``."""

    READS: ClassVar[tuple[str, ...]] = ("src",)
    WRITES: ClassVar[tuple[str, ...]] = ("dst",)

    def ins(self) -> tuple[SSAValue, ...]:
        """What the op reads: buffers, tensors and scalars; not its temporary buffer."""
        return self._held(self.READS)

    def outs(self) -> tuple[SSAValue, ...]:
        """What the op writes."""
        return self._held(self.WRITES)

    def _held(self, fields: Sequence[str]) -> tuple[SSAValue, ...]:
        where, operands = places(self), self._operands
        return tuple([operands[index] for field in fields for index in where[field]])

    def on_tensors(self) -> bool:
        """Whether the op works on tensors only."""
        types = [operand.type for operand in self.operands]
        return any(isinstance(t, TensorType) for t in types) and not any(isinstance(t, MemRefType) for t in types)

    def on_memrefs(self) -> bool:
        """Whether the op works on memrefs only."""
        types = [operand.type for operand in self.operands]
        return any(isinstance(t, MemRefType) for t in types) and not any(isinstance(t, TensorType) for t in types)


def flat(operands: SSAValue | Iterable[SSAValue] | None) -> tuple[SSAValue, ...]:
    """One value, several or none, as a tuple."""
    if operands is None:
        return ()
    return (operands,) if isinstance(operands, SSAValue) else tuple(operands)


def results_for(*outs: SSAValue | Operation) -> list[Attribute]:
    """Result types of an op that writes these: the types of those that are tensors."""
    types = (SSAValue.get(out).type for out in outs)
    return [type_ for type_ in types if isinstance(type_, TensorType)]


def fail(message: str) -> None:
    """Reject the op."""
    raise VerifyException(message)


def compatible(sizes: Iterable[int]) -> bool:
    """Whether the static ones among some sizes of an axis are equal."""
    return len({size for size in sizes if size != DYNAMIC_INDEX}) <= 1


def same_shape(*types: ShapedType) -> bool:
    """Whether shapes have one rank and agree wherever both are static."""
    shapes = [type_.get_shape() for type_ in types]
    return len({len(shape) for shape in shapes}) <= 1 and all(compatible(sizes) for sizes in zip(*shapes, strict=True))


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a value, which the op that asks needs to know."""
    if not isinstance(value.type, ShapedType):
        msg = f"needs the number of dimensions of '{value.type}'"
        raise VerifyException(msg)
    return value.type.get_shape()


def shaped_types(values: Iterable[SSAValue]) -> list[ShapedType]:
    """The types of those values that have a shape."""
    return [value.type for value in values if isinstance(value.type, ShapedType)]


def destination_style(op: StructuredOp) -> None:
    """One tensor result per tensor destination, of its type."""
    tensors: list[tuple[SSAValue, int]] = []
    for out in op.outs():
        if isinstance(out.type, TensorType):
            tensors.append((out, _place(op, out)))
        elif not isinstance(out.type, MemRefType):
            fail(f"expected that operand #{_place(op, out)} is a ranked tensor or a ranked memref")
    results = [result for result in op.results if isinstance(result.type, TensorType)]
    if len(results) != len(tensors):
        fail(f"expected the number of tensor results ({len(results)}) to be equal to the number of output tensors "
             f"({len(tensors)})")
    for (out, index), result in zip(tensors, results, strict=True):
        if out.type != result.type:
            fail(f"expected type of operand #{index} ({out.type}) to match type of corresponding result ({result.type})")


def _place(op: StructuredOp, out: SSAValue) -> int:
    """Number of a destination among the operands; a value that is also read stands behind that reading."""
    return max(place for place, operand in enumerate(op.operands) if operand is out)


def same_rank(op: StructuredOp) -> None:
    """All shaped operands and results have one rank, the temporary buffer aside."""
    ranks = {t.get_num_dims() for t in shaped_types((*op.ins(), *op.outs(), *op.results))}
    if len(ranks) > 1:
        fail("operands must have same rank")


def same_element_type(op: DialectOp) -> None:
    """All operands, the temporary buffer included, have one element type."""
    types = [element_type(operand.type) for operand in op.operands]
    if any(t != types[0] for t in types[1:]):
        fail("requires the same element type for all operands")


def element_types(indices: Sequence[int], allowed: Sequence[DType]) -> Rule:
    """The operands at these positions have one of the allowed element types."""
    types = frozenset(mlir_type(element) for element in allowed)
    places = " and ".join(map(str, indices))
    message = f"failed to verify that operand at idx {places} should have element type {' or '.join(map(_summary, allowed))}"

    def check(op: Operation) -> None:
        operands = op.operands
        for index in indices:
            if index >= len(operands) or element_type(operands[index].type) not in types:
                fail(message)

    return check


def vector_only(index: int) -> Rule:
    """The operand at that position is no scalar."""

    def check(op: Operation) -> None:
        if index >= len(op.operands):
            fail(f"failed to verify that operand at index {index} exists")
        if not isinstance(op.operands[index].type, ShapedType):
            fail(f"failed to verify that operand at index {index} is vector-only")

    return check


def axes(op: Operation, name: str) -> tuple[int, ...]:
    """The axes that a property of the op lists; empty where it is absent."""
    array = op.properties.get(name)
    return integers_in(array) if isinstance(array, DenseArrayBase) else ()


def no_broadcast_with_transpose(op: StructuredOp) -> None:
    """An op broadcasts its inputs or transposes them, not both."""
    permutation = axes(op, "transpose")
    if axes(op, "broadcast") and any(axis != place for place, axis in enumerate(permutation)):
        fail("Broadcast OTF and Transpose OTF cannot be enabled at the same time")


def nary(count: int, *, inline_broadcast: bool, temp_is_input: bool = False) -> Rule:
    """The op has so many inputs, and on memrefs all shapes agree unless it broadcasts or transposes."""

    def check(op: Any) -> None:
        found = len(op.ins()) + (1 if temp_is_input and getattr(op, "temp_buffer", None) is not None else 0)
        if found != count:
            fail(f"elementwise op expected {count} inputs, but found {found}")
        if not op.outs():
            fail("elementwise op expected a destination, but found none")
        shapes = shaped_types((*op.ins(), *op.outs(), *op.results))
        if not shapes:
            fail("at least one operands should be ranked")
        if op.on_tensors() or (inline_broadcast and axes(op, "broadcast")) or axes(op, "transpose"):
            return
        if not same_shape(*shapes):
            fail("operands' shape are inconsistent")

    return check


def broadcastable(op: StructuredOp) -> None:
    """The axes of ``broadcast`` are axes of the destination, and the inputs have size 1 or its size there."""
    listed = axes(op, "broadcast")
    if not listed or op.on_tensors():
        return
    target = _single_output(op, "BroadcastableOTF")
    if any(axis < 0 or axis >= len(target) for axis in listed):
        fail("broadcast dim exceeds op's rank")
    shapes = [t.get_shape() for t in shaped_types(op.ins())]
    for axis, size in enumerate(target):
        sizes = [shape[axis] for shape in shapes]
        if axis in listed:
            if any(found not in (1, size, DYNAMIC_INDEX) for found in sizes):
                fail("input operand's broadcast dim is not 1")
        elif not compatible((*sizes, size)):
            fail("input operand's non-broadcast dim does not match with output")


def transposable(op: StructuredOp) -> None:
    """``transpose`` is a permutation that keeps the last axis, and the shapes agree under it."""
    permutation = axes(op, "transpose")
    if not permutation or op.on_tensors():
        return
    target = _single_output(op, "TransposableOTF")
    if sorted(permutation) != list(range(len(target))):
        fail(f"expects 'transpose' to be a permutation, found {', '.join(map(str, permutation))}")
    if permutation[-1] != len(target) - 1:
        fail("transpose dim is the last dimension")
    shapes = [t.get_shape() for t in shaped_types(op.ins())]
    for place in reversed(range(len(target))):
        if not compatible((*(shape[permutation[place]] for shape in shapes), target[place])):
            fail(f"failed to verify transpose behavior at {place} {permutation[place]}")


def _single_output(op: StructuredOp, trait: str) -> tuple[int, ...]:
    outs = op.outs()
    if len(outs) != 1:
        fail(f"{trait} Op expect 1 output, but found {len(outs)}")
    return shape_of(outs[0])


def reject_fp8_before_950(op: Operation, type_: Attribute) -> None:
    """fp8 data needs a register-based target, where the module names a target at all."""
    if element_type(type_) in FP8:
        target = hacc.target_of(op)
        if target and not hacc.is_register_based(target):
            fail("Current hardware doesn't support fp8 type")


def temp_buffer_rank_one(op: Any) -> None:
    """The temporary buffer is one-dimensional."""
    buffer = op.temp_buffer
    if buffer is not None and isinstance(buffer.type, MemRefType) and buffer.type.get_num_dims() != 1:
        fail("temp_buffer'rank should be one")
