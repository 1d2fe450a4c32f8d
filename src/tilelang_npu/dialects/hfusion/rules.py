"""Verification rules of HFusion's ops, as in AscendNPU-IR's verifier (master 52f96a13).

A rule is a function that takes an op and raises VerifyException if the op breaks the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FixedBitwidthType,
    IntegerAttr,
    IntegerType,
    ShapedType,
    Signedness,
    TensorType,
    bf16,
    f8E4M3FN,
    f8E5M2,
    f16,
    f32,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from tilelang_npu.dialects.ir.declaration import Rule, TableOp, fail, require
from tilelang_npu.dialects.mlir.linalg_rules import (
    element_of,
    input_count,
    ins_and_outs,
    shape_of,
    verify_elementwise,
    writes_its_outs,
)
from tilelang_npu.dialects.mlir.rules import is_float, is_signless, same_shape

FLOATS = (bf16, f16, f32)
NUMBERS = (*FLOATS, i8, i16, i32, i64)
SMALL_FLOATS = (f8E4M3FN, f8E5M2)
CHANNELS = 2


def elementwise_rules(count: int, *extra: Rule) -> tuple[Rule, ...]:
    """Returns the rules of an elementwise op with ``count`` inputs: the general rules, then ``extra``."""
    return (input_count(count), verify_elementwise, *extra)


def _elements(values: Sequence[SSAValue]) -> list[Attribute]:
    return [element_of(value.type) for value in values]


def verify_compare(op: Operation) -> None:
    """Verifies that both inputs of a comparison have the same element type, and that the result has element type i1."""
    inputs, outs = map(_elements, ins_and_outs(op))
    require(inputs[0] == inputs[1], f"expects inputs of one element type, got '{inputs[0]}' and '{inputs[1]}'")
    require(outs == [i1], f"type of yield operand 1 ('i1') doesn't match the element type of the enclosing op ('{outs[0]}')")


def verify_select(op: Operation) -> None:
    """Verifies that the first input of a select has element type i1, and that the others have that of the result."""
    inputs, outs = map(_elements, ins_and_outs(op))
    require(inputs[0] == i1, f"expects a condition of i1, got '{inputs[0]}'")
    require(inputs[1] == inputs[2] == outs[0], f"expects one element type, got '{inputs[1]}', '{inputs[2]}' and '{outs[0]}'")


def verify_cast(op: TableOp) -> None:
    """Verifies that a cast with the rounding mode ``truncwithoverflow`` converts floats or integers to integers."""
    inputs, outs = map(_elements, ins_and_outs(op))
    if op.round_mode is not None and op.round_mode.data == "truncwithoverflow":
        whole = is_signless(outs[0]) and (is_float(inputs[0]) or is_signless(inputs[0]))
        require(whole, "inputs of castOp in TRUNCWITHOVERFLOW rounding mode must be float or integer type and outputs must be"
                       " integer type")


def verify_bitcast(op: Operation) -> None:
    """Verifies that both element types of a bitcast have the same width, and that ``arith.bitcast`` accepts them."""
    inputs, outs = map(_elements, ins_and_outs(op))
    one, other = inputs[0], outs[0]
    numbers = all(is_signless(each) or is_float(each) for each in (one, other))
    fits = isinstance(one, FixedBitwidthType) and isinstance(other, FixedBitwidthType) and one.bitwidth == other.bitwidth
    require(numbers and fits, f"operand type '{one}' and result type '{other}' are cast incompatible")


def verify_reduce_with_index(op: TableOp) -> None:
    """Verifies that the destinations of a reduction with index have the shape of the inputs without the reduced axes."""
    writes_its_outs(op)
    inputs, inits = ins_and_outs(op)
    axes = list(op.dimensions.get_values())
    require(axes and inputs, "ReduceWithIndexOp requires positive number of dimensions and inputs")
    require(axes == sorted(set(axes)), "dense array attribute should be in increasing order")
    shape = shape_of(inputs[0].type)
    require(all(0 <= axis < len(shape) for axis in axes),
            f"dimensions for reduction should be in the range [0, {len(shape) - 1}].")
    rest = [size for axis, size in enumerate(shape) if axis not in axes]
    for init in inits:
        kept = list(shape_of(init.type))
        require(len(kept) == len(rest),
                f"number of dimensions after reduction {len(rest)} doesn't match the init rank {len(kept)}")
        require(kept == rest, f"init dimensions {kept} doesn't match input dimensions after reduction {rest}")
    for value in inputs[1:]:
        require(shape_of(value.type) == shape,
                f"expects inputs of one shape, got {list(shape)} and {list(shape_of(value.type))}")


def verify_gather(op: TableOp) -> None:
    """Verifies that source and destination of a gather have equal sizes on all axes but the gather axis."""
    writes_its_outs(op)
    inputs, outs = ins_and_outs(op)
    axis, source, target = op.axis.value.data, shape_of(inputs[0].type), shape_of(outs[0].type)
    for place, (one, other) in enumerate(zip(source, target, strict=False)):
        require(place == axis or one == other, "All dimensions must match except the gather axis")


def verify_gather_mask(op: TableOp) -> None:
    """Verifies that a ``gather_mask`` has two results if its operands are tensors, and none if they are memrefs."""
    writes_its_outs(op)
    on_tensors = any(isinstance(value.type, TensorType) for value in op.operands)
    expected = CHANNELS if on_tensors else 0
    require(len(op.result) == expected, f"expecting exactly {expected} results, but got {len(op.result)}")


def _tensors(op: Operation) -> list[TensorType[Attribute]]:
    """The types of all operands and results, which must be tensors."""
    types: list[TensorType[Attribute]] = []
    for type_ in (*op.operand_types, *op.result_types):
        if not isinstance(type_, TensorType):
            fail(f"must be ranked tensor, but got '{type_}'")
        types.append(type_)
    return types


def one_rank(op: Operation) -> None:
    """Verifies that all operands and results that have a shape have the same rank."""
    types = [type_ for type_ in (*op.operand_types, *op.result_types) if isinstance(type_, ShapedType)]
    require(len({len(type_.get_shape()) for type_ in types}) <= 1, "operands must have same rank")


def of_types(inputs: Sequence[Attribute], results: Sequence[Attribute]) -> Rule:
    """Returns a rule which verifies that an op has one result, and that operands and result are tensors.

    The element types of the operands must be in ``inputs``, that of the result in ``results``.
    """

    def check(op: TableOp) -> None:
        _tensors(op)
        require(len(op.result) == 1, f"expects one result, got {len(op.result)}")
        for values, allowed in ((op.src, inputs), (op.result, results)):
            for value in values:
                require(element_of(value.type) in allowed,
                        f"must be ranked tensor of {' or '.join(map(str, allowed))} values, but got '{value.type}'")

    return check


def operand_count(count: int) -> Rule:
    """Returns a rule which verifies that an op has ``count`` operands."""

    def check(op: Operation) -> None:
        require(len(op.operands) == count, f"expected {count} operands, but found {len(op.operands)}")

    return check


def one_tensor_type(op: Operation) -> None:
    """Verifies that all operands and results are tensors of the same type; dynamic sizes are not compared."""
    types = _tensors(op)
    for type_ in types[1:]:
        require(type_.element_type == types[0].element_type and same_shape(types[0], type_),
                "requires the same type for all operands and results")


def one_tensor_shape(op: Operation) -> None:
    """Verifies that all operands and results are tensors of the same shape; dynamic sizes are not compared."""
    types = _tensors(op)
    require(all(same_shape(types[0], type_) for type_ in types), "requires the same shape for all operands and results")


def verify_interleave(op: TableOp) -> None:
    """Verifies that an interleave has two operands of the same type, and that the last axis of the result has an even size."""
    one_rank(op)
    types = _tensors(op)
    require(len(op.src) == CHANNELS, "num of interleave op input must equal channel num")
    require(types[0] == types[1], f"failed to verify that all of {{input}} have same type: '{types[0]}' and '{types[1]}'")
    require(len(op.result) == 1, f"expects one result, got {len(op.result)}")
    shape = types[-1].get_shape()
    require(shape, "requires input rank to be at least 1")
    require(shape[-1] == DYNAMIC_INDEX or shape[-1] % CHANNELS == 0,
            "last dimension size of output RankedTensorType must be multiples of current channel num")


def verify_deinterleave(op: Any) -> None:
    """Verifies that the last axis of the source of a deinterleave has an even size, and that all results have the same type."""
    shape = op.src.type.get_shape()
    require(shape, "requires input rank to be at least 1")
    one_rank(op)
    require(shape[-1] == DYNAMIC_INDEX or shape[-1] % CHANNELS == 0,
            "last dimension size of input RankedTensorType must be multiples of 2")
    types = set(op.result.types)
    require(len(types) == 1, "failed to verify that all of {output} have same type")


def verify_scan(op: TableOp) -> None:
    """Verifies that ``cum_dims`` of a scan lists exactly one axis of the tensor."""
    axes, rank = list(op.cum_dims.get_values()), len(op.result[0].type.get_shape())
    one_rank(op)
    require(axes == sorted(set(axes)), "dense array attribute should be in increasing order")
    require(axes, "have empty cum dims array")
    for axis in axes:
        require(0 <= axis < rank, f"have invalid index '{axis}' inside cum dims array")
    require(len(axes) == 1, "have more than one cumulative dims")


def verify_sort(op: TableOp) -> None:
    """Verifies that the axis of a sort is the last one."""
    one_rank(op)
    for type_ in op.result.types:
        require(isinstance(type_, TensorType), f"result must be variadic of ranked tensor, but got '{type_}'")
    axis, rank = op.sort_axis.value.data, len(op.src[0].type.get_shape())
    require(axis in (rank - 1, -1), "Currently only tail axis sorting is supported")


def verify_hypot(op: TableOp) -> None:
    """Verifies that a hypot has two or three operands of the type of the result, and not three of bf16."""
    types = _tensors(op)
    require(len(op.src) in (2, 3), f"expected 2 or 3 operands, but found {len(op.src)}")
    require(all(type_ == types[0] for type_ in types), "requires inputs and output to have the same type")
    require(len(op.src) == 2 or types[0].element_type != bf16, "supports bf16 only for the 2-input form")


def verify_wide_product(op: Operation) -> None:
    """Verifies that the factors and both halves of the product have the same type, with signless integers or indices."""
    types = [*op.operand_types, *op.result_types]
    element = getattr(types[0], "element_type", types[0])
    require(is_signless(element) or str(element) == "index", f"operand #0 must be signless-integer-like, but got '{types[0]}'")
    require(all(type_ == types[0] for type_ in types), "failed to verify that all of {lhs, rhs, low, high} have same type")


def verify_histogram(op: TableOp) -> None:
    """Verifies the types of a histogram: integer input, a mask of i1, i8 or i16, and a result with ``num_bins`` elements."""
    mask, source, out = op.mask, op.input.type, op.output.type
    kinds = [IntegerType(bits, sign) for bits in (8, 16, 32, 64) for sign in (Signedness.SIGNLESS, Signedness.UNSIGNED)]
    require(isinstance(source, TensorType) and source.element_type in kinds,
            f"operand #0 must be ranked tensor of integer values of 8 to 64 bits, but got '{source}'")
    require(mask is None or (isinstance(mask.type, TensorType) and mask.type.element_type in (i1, i8, i16)),
            "operand #1 must be ranked tensor of 1-bit signless integer or 8-bit signless integer or 16-bit signless integer"
            f" values, but got '{None if mask is None else mask.type}'")
    require(isinstance(out, TensorType) and len(out.get_shape()) == 1, "output must be rank-1")
    require(out.element_type in (i8, i16, i32, i64),
            f"result #0 must be ranked tensor of signless integer values, but got '{out}'")
    assert isinstance(op.num_bins, IntegerAttr)
    length, bins = out.get_shape()[0], op.num_bins.value.data
    require(length in (bins, DYNAMIC_INDEX), f"output length ({length}) must equal num_bins ({bins})")
