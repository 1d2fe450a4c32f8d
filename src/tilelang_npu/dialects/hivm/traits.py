"""Verification rules that several HIVM ops share: the traits of AscendNPU-IR's ODS, with the toolchain's messages.

A rule is a function that raises VerifyException. An op lists its rules, and its verifier calls them in the order of the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IntegerAttr, MemRefType, ShapedType, f8E4M3FN, f8E5M2, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue

from tilelang_npu.dialects import hacc
from tilelang_npu.dialects.ir.declaration import DialectOp, Rule, fail
from tilelang_npu.dialects.ir.destination_style import StructuredOp, shape_of
from tilelang_npu.dialects.ir.fields import integers_in
from tilelang_npu.dialects.ir.mlir_dtypes import element_type, mlir_type
from tilelang_npu.target.dtypes import DType

I64_ARRAY = DenseArrayBase.constr(i64)
NO_AXES = DenseArrayBase.from_list(i64, [])
BOOL = IntegerAttr.constr(i1)
NUMBER = IntegerAttr.constr(i64)
FP8 = (f8E4M3FN, f8E5M2)
_SUMMARIES = {"f16": "16-bit float", "f32": "32-bit float", "bf16": "bfloat16 type", "f64": "64-bit float"}


def _summary(element: DType) -> str:
    """An element type in the words of ODS."""
    name = element.mlir
    if name in _SUMMARIES:
        return _SUMMARIES[name]
    if name.startswith("f"):
        return f"{name} type"
    return f"{element.bits}-bit {'unsigned' if name.startswith('u') else 'signless'} integer"


def compatible(sizes: Iterable[int]) -> bool:
    """Whether all static sizes among ``sizes`` are equal."""
    return len({size for size in sizes if size != DYNAMIC_INDEX}) <= 1


def same_shape(*types: ShapedType) -> bool:
    """Whether all types have the same rank, and on each axis all static sizes are equal."""
    shapes = [type_.get_shape() for type_ in types]
    return len({len(shape) for shape in shapes}) <= 1 and all(compatible(sizes) for sizes in zip(*shapes, strict=True))


def shaped_types(values: Iterable[SSAValue]) -> list[ShapedType]:
    """Returns the types of the values, without the types that have no shape."""
    return [value.type for value in values if isinstance(value.type, ShapedType)]


def same_rank(op: StructuredOp) -> None:
    """Verifies that all inputs, destinations and results that have a shape have the same rank, unlike the temporary buffer."""
    ranks = {t.get_num_dims() for t in shaped_types((*op.ins(), *op.outs(), *op.results))}
    if len(ranks) > 1:
        fail("operands must have same rank")


def same_element_type(op: DialectOp) -> None:
    """Verifies that all operands, including the temporary buffer, have the same element type."""
    types = [element_type(operand.type) for operand in op.operands]
    if any(t != types[0] for t in types[1:]):
        fail("requires the same element type for all operands")


def element_types(indices: Sequence[int], allowed: Sequence[DType]) -> Rule:
    """Returns a rule which verifies that each operand at these positions has one of the allowed element types."""
    types = frozenset(mlir_type(element) for element in allowed)
    positions = " and ".join(map(str, indices))
    message = f"failed to verify that operand at idx {positions} should have element type {' or '.join(map(_summary, allowed))}"

    def check(op: Operation) -> None:
        operands = op.operands
        for index in indices:
            if index >= len(operands) or element_type(operands[index].type) not in types:
                fail(message)

    return check


def vector_only(index: int) -> Rule:
    """Returns a rule which verifies that the operand at a position exists and is not a scalar."""

    def check(op: Operation) -> None:
        if index >= len(op.operands):
            fail(f"failed to verify that operand at index {index} exists")
        if not isinstance(op.operands[index].type, ShapedType):
            fail(f"failed to verify that operand at index {index} is vector-only")

    return check


def equal_element_types(first: str, second: str, message: str = "") -> Rule:
    """Returns a rule which verifies that two operands have the same element type, unless one of them is absent.

    ``first`` and ``second`` are the names of the operands; ``message`` replaces the default error message.
    """
    message = message or f"failed to verify that all of {{{first}, {second}}} have same element type"

    def check(op: Operation) -> None:
        one, other = getattr(op, first), getattr(op, second)
        if one is not None and other is not None and element_type(one.type) != element_type(other.type):
            fail(message)

    return check


def equal_shapes(first: str, second: str, message: str = "") -> Rule:
    """Returns a rule which verifies that two operands have exactly the same shape, unless one of them is absent.

    ``first`` and ``second`` are the names of the operands; ``message`` replaces the default error message.
    """
    message = message or f"failed to verify that all of {{{first}, {second}}} have same shape"

    def check(op: Operation) -> None:
        one, other = getattr(op, first), getattr(op, second)
        if one is not None and other is not None and shape_of(one) != shape_of(other):
            fail(message)

    return check


def axes(op: Operation, name: str) -> tuple[int, ...]:
    """Returns the integers in the property ``name`` of an op; empty if the op does not have the property."""
    array = op.properties.get(name)
    return integers_in(array) if isinstance(array, DenseArrayBase) else ()


def no_broadcast_with_transpose(op: StructuredOp) -> None:
    """Verifies that an op does not both broadcast and transpose its inputs."""
    permutation = axes(op, "transpose")
    if axes(op, "broadcast") and any(axis != place for place, axis in enumerate(permutation)):
        fail("Broadcast OTF and Transpose OTF cannot be enabled at the same time")


def nary(count: int, *, inline_broadcast: bool, temp_is_input: bool = False) -> Rule:
    """Returns a rule which verifies the operands of an elementwise op.

    The op must have ``count`` inputs and at least one destination. On memrefs all shapes must be equal, unless the op
    broadcasts or transposes its inputs.

    Args:
        count: the number of inputs.
        inline_broadcast: whether the op can broadcast its inputs.
        temp_is_input: whether the toolchain counts the temporary buffer as an input.
    """

    def check(op: StructuredOp) -> None:
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
    """Verifies the axes in ``broadcast``: each must be an axis of the destination.

    Along these axes each input must have size 1 or the destination's size, along all other axes the destination's size.
    """
    listed = axes(op, "broadcast")
    if not listed or op.on_tensors():
        return
    target = _single_output_shape(op, "BroadcastableOTF")
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
    """Verifies that ``transpose`` is a permutation that keeps the last axis in place.

    The permuted shape of each input must be the destination's shape.
    """
    permutation = axes(op, "transpose")
    if not permutation or op.on_tensors():
        return
    target = _single_output_shape(op, "TransposableOTF")
    if sorted(permutation) != list(range(len(target))):
        fail(f"expects 'transpose' to be a permutation, found {', '.join(map(str, permutation))}")
    if permutation[-1] != len(target) - 1:
        fail("transpose dim is the last dimension")
    shapes = [t.get_shape() for t in shaped_types(op.ins())]
    for place in reversed(range(len(target))):
        if not compatible((*(shape[permutation[place]] for shape in shapes), target[place])):
            fail(f"failed to verify transpose behavior at {place} {permutation[place]}")


def _single_output_shape(op: StructuredOp, trait: str) -> tuple[int, ...]:
    outs = op.outs()
    if len(outs) != 1:
        fail(f"{trait} Op expect 1 output, but found {len(outs)}")
    return shape_of(outs[0])


def reject_unknown_fp8(op: Operation, type_: Attribute) -> None:
    """Verifies that ``type_`` does not have fp8 elements which the chip that the module names does not support.

    Raises:
        VerifyException: the module names a chip without this fp8 type.
    """
    element = element_type(type_)
    if element in FP8 and hacc.target_of(op) and str(element) not in hacc.features_of(op).element_types:
        fail("Current hardware doesn't support fp8 type")


class _WithTemporary(Protocol):
    """An op with a temporary buffer."""

    @property
    def temp_buffer(self) -> SSAValue | None: ...


def temp_buffer_rank_one(op: _WithTemporary) -> None:
    """Verifies that the temporary buffer, if there is one, has one dimension."""
    buffer = op.temp_buffer
    if buffer is not None and isinstance(buffer.type, MemRefType) and buffer.type.get_num_dims() != 1:
        fail("temp_buffer'rank should be one")
