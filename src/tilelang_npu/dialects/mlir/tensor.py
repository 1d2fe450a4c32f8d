"""The ops of tensor whose rules in xDSL are narrower than those of LLVM 19, and those that it has not."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    FixedBitwidthType,
    IndexType,
    TensorType,
    UnitAttr,
    UnrankedTensorType,
    i64,
)
from xdsl.dialects.utils.dynamic_index_list import DynamicIndexList
from xdsl.dialects.utils.reshape_ops_utils import verify_reshape_like_types
from xdsl.ir import BlockArgument
from xdsl.irdl import (
    AttrSizedOperandSegments,
    VarConstraint,
    base,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tilelang_npu.dialects.ir.declaration import DialectOp, OfClass, extend_dialect, operation, replace_rules
from tilelang_npu.dialects.mlir.rules import (
    drops_ones,
    dynamic_sizes,
    fitting_shapes,
    is_whole,
    output_shape,
    require,
    slice_of,
)
from tilelang_npu.dialects.mlir.tensor_pack import PackOp, UnpackOp

_ANY = OfClass((TensorType, UnrankedTensorType), "tensor of any type values")
_NUMBERS = DenseArrayBase.constr(i64)


def _expandable(op: Any) -> None:
    _reshapeable(op.src.type, op.result.type, op)
    output_shape(op, op.dynamic_output_shape, op.result.type.get_shape(), sizes=False)


def _collapsible(op: Any) -> None:
    _reshapeable(op.result.type, op.src.type, op)


def _reshapeable(collapsed: Any, expanded: Any, op: Any) -> None:
    require(collapsed.element_type == expanded.element_type, f"expected element type '{collapsed.element_type}', but got"
                                                             f" '{expanded.element_type}'")
    if collapsed.get_shape():
        verify_reshape_like_types(collapsed, expanded, op.reassociation)
        return
    require(not len(op.reassociation),
            f"expected collapsed rank (0) to equal the number of reassociation maps ({len(op.reassociation)}).")
    require(all(size in (1, DYNAMIC_INDEX) for size in expanded.get_shape()),
            "invalid to reshape tensor/memref with non-unit extent dimensions to zero-rank tensor/memref")


def _paddable(op: Any) -> None:
    source, result = op.source.type, op.result.type
    low, high, shape = op.static_low.get_values(), op.static_high.get_values(), source.get_shape()
    for static, dynamic in ((low, op.low), (high, op.high)):
        if len(static) != len(shape):
            msg = f"expected {len(shape)} pad sizes, one for each axis of '{source}', but got {len(static)}"
            raise VerifyException(msg)
        if list(static).count(DYNAMIC_INDEX) != len(dynamic):
            msg = f"expected {list(static).count(DYNAMIC_INDEX)} dynamic pad sizes but got {len(dynamic)}"
            raise VerifyException(msg)
    inferred = [DYNAMIC_INDEX if DYNAMIC_INDEX in axis else sum(axis) for axis in zip(shape, low, high, strict=True)]
    kind = TensorType(source.element_type, inferred)
    sizes = result.get_shape()
    # A size that is not known to the op may be stated by the result's type; one that is known may not be hidden by it.
    if len(sizes) != len(inferred) or any(known not in (DYNAMIC_INDEX, size)
                                          for size, known in zip(sizes, inferred, strict=True)):
        msg = f"specified type '{result}' does not match the inferred type '{kind}'"
        raise VerifyException(msg)
    arguments = op.region.block.args
    if len(arguments) != len(shape):
        msg = f"expected the block to have {len(shape)} arguments"
        raise VerifyException(msg)
    for number, argument in enumerate(arguments, 1):
        if not isinstance(argument.type, IndexType):
            msg = f"expected block argument {number} to be an index"
            raise VerifyException(msg)
    last = op.region.block.last_op
    if isinstance(last, tensor.YieldOp) and [value.type for value in last.operands] != [result.element_type]:
        msg = "expected yield type to match shape element type"
        raise VerifyException(msg)


def _reshaped(op: Any) -> None:
    source, shape, result = op.source.type, op.shape.type, op.result.type
    require(source.element_type == result.element_type,
             "element types of source and destination tensor types should be the same")
    require(len(shape.get_shape()) == 1, "shape tensor must have a rank one")
    length = shape.get_shape()[0]
    if isinstance(result, TensorType):
        require(length != DYNAMIC_INDEX,
                 "cannot use shape operand with dynamic length to reshape to statically-ranked tensor type")
        require(length == len(result.get_shape()), "length of shape operand differs from the result's tensor rank")
        if isinstance(source, TensorType):
            sizes = (*source.get_shape(), *result.get_shape())
            require(DYNAMIC_INDEX in sizes or math.prod(source.get_shape()) == math.prod(result.get_shape()),
                     "source and destination tensor should have the same number of elements")


def _generates(op: Any) -> None:
    shape, arguments = op.result.type.get_shape(), op.body.block.args
    require(shape.count(DYNAMIC_INDEX) == len(op.dynamicExtents),
             "must have as many index operands as dynamic extents in the result type")
    require(len(arguments) == len(shape), "must have one body argument per input dimension")
    require(all(isinstance(argument.type, IndexType) for argument in arguments), "all body arguments must be index")
    last = op.body.block.last_op
    require(isinstance(last, tensor.YieldOp) and [value.type for value in last.operands] == [op.result.type.element_type],
             "body must be terminated with a `yield` operation of the tensor element type")


def _same_bits(op: Any) -> None:
    source, result = op.source.type, op.dest.type
    one, other = source.element_type, result.element_type
    fits = (isinstance(one, FixedBitwidthType) and isinstance(other, FixedBitwidthType) and one.bitwidth == other.bitwidth
            and fitting_shapes(source, result))
    require(fits, f"operand type '{source}' and result type '{result}' are cast incompatible")


def _gathers(op: Any) -> None:
    axes, shape = list(op.gather_dims.get_values()), list(op.source.type.get_shape())
    indices = list(op.indices.type.get_shape())
    require(is_whole(op.indices.type.element_type),
            f"operand #1 must be ranked tensor of signless integer or index values, but got '{op.indices.type}'")
    require(axes, "gather_dims must be non-empty")
    require(len(axes) <= len(shape), "gather_dims overflow source rank")
    require(min(axes) >= 0 and max(axes) < len(shape), "gather_dims value must be in the range of source's axes")
    require(axes == sorted(set(axes)), "gather_dims values must be strictly increasing")
    require(indices and indices[-1] == len(axes),
             "gather_dims length must match the size of last dimension of indices")
    element = op.source.type.element_type
    whole = TensorType(element, [*indices[:-1], *(1 if axis in axes else size for axis, size in enumerate(shape))])
    reduced = TensorType(element, [*indices[:-1], *(size for axis, size in enumerate(shape) if axis not in axes)])
    require(op.result.type in (whole, reduced),
             f"result type mismatch: expected '{whole}' or its rank-reduced variant '{reduced}' (got: '{op.result.type}')")


def _slice(op: Any) -> None:
    require(isinstance(op.dest, BlockArgument), "may only insert into an output block argument")
    _part(op, op.dest.type, op.source.type, "source")
    parent = op.parent_op()
    require(parent is not None and parent.name == "scf.forall.in_parallel", "expected ParallelCombiningOpInterface parent")


def _inserts_slice(op: Any) -> None:
    _part(op, op.dest.type, op.source.type, "source")
    require(op.result.type == op.dest.type, "failed to verify that all of {dest, result} have same type")


def _extracts_slice(op: Any) -> None:
    _part(op, op.source.type, op.result.type, "result")


def _part(op: Any, whole: TensorType[Any], part: TensorType[Any], word: str) -> None:
    expected = TensorType(whole.element_type, slice_of(op, whole.get_shape()))
    require(part.element_type == whole.element_type and drops_ones(expected.get_shape(), part.get_shape()),
            f"expected {word} type to be '{expected}' or a rank-reduced version, but got '{part}'")


def _empty(op: Any) -> None:
    dynamic_sizes(op.dynamic_sizes, op.tensor.type.get_shape())


def _has_axes(op: Any) -> None:
    kind = op.source.type
    require(not isinstance(kind, TensorType) or kind.get_shape(),
            f"operand #0 must be non-0-ranked or unranked tensor, but got '{kind}'")


def _castable(op: Any) -> None:
    source, result = op.source.type, op.dest.type
    require(source.element_type == result.element_type and fitting_shapes(source, result),
            f"operand type '{source}' and result type '{result}' are cast incompatible")


def _indexed(op: Any) -> None:
    inserts = op.name == "tensor.insert"
    source = op.dest.type if inserts else op.tensor.type
    require(len(op.indices) == len(source.get_shape()),
            f"incorrect number of indices: {len(op.indices)} for {len(source.get_shape())} axes")
    value = op.scalar if inserts else op.result
    require(value.type == source.element_type, f"failed to verify that type of value matches element type of '{source}'")
    require(not inserts or op.result.type == source, "expected result type to match dest type")


def _from_elements(op: Any) -> None:
    kind = op.result.type
    require(DYNAMIC_INDEX not in kind.get_shape(),
            f"result #0 must be statically shaped tensor of any type values, but got '{kind}'")
    fits = len(op.elements) == math.prod(kind.get_shape()) and all(type_ == kind.element_type for type_ in op.elements.types)
    require(fits, "failed to verify that operand types match result element type")


@operation()
class RankOp(DialectOp):
    """The number of a tensor's axes."""

    name = "tensor.rank"
    tensor = operand_def(_ANY)
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict $tensor `:` type($tensor)"


@operation(rules=[_generates])
class GenerateOp(DialectOp):
    """A tensor each of whose elements a body computes from its place."""

    name = "tensor.generate"
    dynamicExtents = var_operand_def(IndexType)
    body = region_def("single_block")
    result = result_def(TensorType)
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = "$dynamicExtents $body attr-dict `:` type($result)"


@operation(rules=[_same_bits])
class BitcastOp(DialectOp):
    """The same bits read as another type of as many."""

    name = "tensor.bitcast"
    source = operand_def(_ANY)
    dest = result_def(_ANY)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($dest)"


@operation(rules=[_gathers])
class GatherOp(DialectOp):
    """Elements, or slices, of a tensor at places that another one lists."""

    name = "tensor.gather"
    source = operand_def(TensorType)
    indices = operand_def(TensorType)
    gather_dims = prop_def(_NUMBERS)
    unique = opt_prop_def(UnitAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = ("$source `[` $indices `]` `gather_dims` `(` $gather_dims `)` (`unique` $unique^)? attr-dict `:` "
                       "functional-type(operands, results)")


@operation(rules=[_slice], side_effects=True)
class ParallelInsertSliceOp(DialectOp):
    """The slice that one iteration of ``scf.forall`` puts into the result that all share."""

    name = "tensor.parallel_insert_slice"
    DEST: ClassVar = VarConstraint("DEST", base(TensorType))
    source = operand_def(TensorType)
    dest = operand_def(DEST)
    offsets = var_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    static_offsets = prop_def(_NUMBERS)
    static_sizes = prop_def(_NUMBERS)
    static_strides = prop_def(_NUMBERS)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (DynamicIndexList,)
    assembly_format = ("$source `into` $dest `` custom<DynamicIndexList>($offsets, $static_offsets) "
                       "custom<DynamicIndexList>($sizes, $static_sizes) custom<DynamicIndexList>($strides, $static_strides) "
                       "attr-dict `:` type($source) `into` type($dest)")


ExpandShapeOp = replace_rules(tensor.ExpandShapeOp, _expandable)
CollapseShapeOp = replace_rules(tensor.CollapseShapeOp, _collapsible)
PadOp = replace_rules(tensor.PadOp, _paddable)
ReshapeOp = replace_rules(tensor.ReshapeOp, _reshaped, source=_ANY, result=_ANY)
Tensor = extend_dialect(
    tensor.Tensor, ExpandShapeOp, CollapseShapeOp, PadOp, ReshapeOp, RankOp, GenerateOp, BitcastOp, GatherOp,
    ParallelInsertSliceOp, PackOp, UnpackOp, replace_rules(tensor.EmptyOp, _empty), replace_rules(tensor.CastOp, _castable),
    replace_rules(tensor.DimOp, _has_axes),
    replace_rules(tensor.ExtractOp, _indexed), replace_rules(tensor.InsertOp, _indexed), replace_rules(tensor.FromElementsOp, _from_elements),
    replace_rules(tensor.ExtractSliceOp, _extracts_slice), replace_rules(tensor.InsertSliceOp, _inserts_slice))
