"""tensor: verification rules of LLVM 19 for ops of xDSL, and the ops that xDSL lacks."""

from __future__ import annotations

import math
from typing import ClassVar

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
from xdsl.ir import Attribute, BlockArgument, Operation
from xdsl.irdl import (
    AttrSizedOperandSegments,
    VarConstraint,
    base,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure, RecursiveMemoryEffect

from tilelang_npu.dialects.ir.declaration import DialectOp, OfClass, extend_dialect, fail, operation, replace_rules, require
from tilelang_npu.dialects.mlir.rules import (
    any_tensor_type,
    is_rank_reduced,
    is_signless_or_index,
    may_have_same_shape,
    tensor_type,
    verify_dynamic_sizes,
    verify_output_shape,
    verify_slice,
)

_ANY = OfClass((TensorType, UnrankedTensorType), "tensor of any type values")
_NUMBERS = DenseArrayBase.constr(i64)


def _verify_expand_shape(op: tensor.ExpandShapeOp) -> None:
    _verify_regrouping(tensor_type(op.src), tensor_type(op.result), op)
    verify_output_shape(op, op.dynamic_output_shape, tensor_type(op.result).get_shape(), sizes=False)


def _verify_collapse_shape(op: tensor.CollapseShapeOp) -> None:
    _verify_regrouping(tensor_type(op.result), tensor_type(op.src), op)


def _verify_regrouping(collapsed: TensorType[Attribute], expanded: TensorType[Attribute],
                       op: tensor.ExpandShapeOp | tensor.CollapseShapeOp) -> None:
    require(collapsed.element_type == expanded.element_type, f"expected element type '{collapsed.element_type}', but got"
                                                             f" '{expanded.element_type}'")
    if collapsed.get_shape():
        verify_reshape_like_types(collapsed, expanded, op.reassociation)
        return
    require(not len(op.reassociation),
            f"expected collapsed rank (0) to equal the number of reassociation maps ({len(op.reassociation)}).")
    require(all(size in (1, DYNAMIC_INDEX) for size in expanded.get_shape()),
            "invalid to reshape tensor/memref with non-unit extent dimensions to zero-rank tensor/memref")


def _verify_pad(op: tensor.PadOp) -> None:
    source, result = tensor_type(op.source), tensor_type(op.result)
    low, high, shape = op.static_low.get_values(), op.static_high.get_values(), source.get_shape()
    for static, dynamic in ((low, op.low), (high, op.high)):
        if len(static) != len(shape):
            fail(f"expected {len(shape)} pad sizes, one for each axis of '{source}', but got {len(static)}")
        if list(static).count(DYNAMIC_INDEX) != len(dynamic):
            fail(f"expected {list(static).count(DYNAMIC_INDEX)} dynamic pad sizes but got {len(dynamic)}")
    inferred = [DYNAMIC_INDEX if DYNAMIC_INDEX in axis else sum(axis) for axis in zip(shape, low, high, strict=True)]
    kind = TensorType(source.element_type, inferred)
    sizes = result.get_shape()
    # The result's type may state a size that the op does not determine, but a size that the op determines must be in the type.
    if len(sizes) != len(inferred) or any(known not in (DYNAMIC_INDEX, size)
                                          for size, known in zip(sizes, inferred, strict=True)):
        fail(f"specified type '{result}' does not match the inferred type '{kind}'")
    arguments = op.region.block.args
    if len(arguments) != len(shape):
        fail(f"expected the block to have {len(shape)} arguments")
    for number, argument in enumerate(arguments, 1):
        if not isinstance(argument.type, IndexType):
            fail(f"expected block argument {number} to be an index")
    last = op.region.block.last_op
    if isinstance(last, tensor.YieldOp) and [value.type for value in last.operands] != [result.element_type]:
        fail("expected yield type to match shape element type")


def _verify_reshape(op: tensor.ReshapeOp) -> None:
    source, shape, result = any_tensor_type(op.source), tensor_type(op.shape), any_tensor_type(op.result)
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


def _verify_generate(op: GenerateOp) -> None:
    shape, arguments = op.result.type.get_shape(), op.body.block.args
    require(shape.count(DYNAMIC_INDEX) == len(op.dynamicExtents),
             "must have as many index operands as dynamic extents in the result type")
    require(len(arguments) == len(shape), "must have one body argument per input dimension")
    require(all(isinstance(argument.type, IndexType) for argument in arguments), "all body arguments must be index")
    last = op.body.block.last_op
    require(isinstance(last, tensor.YieldOp) and [value.type for value in last.operands] == [op.result.type.element_type],
             "body must be terminated with a `yield` operation of the tensor element type")


def _verify_bitcast(op: BitcastOp) -> None:
    source, result = any_tensor_type(op.source), any_tensor_type(op.dest)
    one, other = source.element_type, result.element_type
    fits = (isinstance(one, FixedBitwidthType) and isinstance(other, FixedBitwidthType) and one.bitwidth == other.bitwidth
            and may_have_same_shape(source, result))
    require(fits, f"operand type '{source}' and result type '{result}' are cast incompatible")


def _verify_gather(op: GatherOp) -> None:
    axes, shape = list(op.gather_dims.get_values()), list(tensor_type(op.source).get_shape())
    indices = list(tensor_type(op.indices).get_shape())
    require(is_signless_or_index(tensor_type(op.indices).element_type),
            f"operand #1 must be ranked tensor of signless integer or index values, but got '{op.indices.type}'")
    require(axes, "gather_dims must be non-empty")
    require(len(axes) <= len(shape), "gather_dims overflow source rank")
    require(min(axes) >= 0 and max(axes) < len(shape), "gather_dims value must be in the range of source's axes")
    require(axes == sorted(set(axes)), "gather_dims values must be strictly increasing")
    require(indices and indices[-1] == len(axes),
             "gather_dims length must match the size of last dimension of indices")
    element = tensor_type(op.source).element_type
    whole = TensorType(element, [*indices[:-1], *(1 if axis in axes else size for axis, size in enumerate(shape))])
    reduced = TensorType(element, [*indices[:-1], *(size for axis, size in enumerate(shape) if axis not in axes)])
    require(op.result.type in (whole, reduced),
             f"result type mismatch: expected '{whole}' or its rank-reduced variant '{reduced}' (got: '{op.result.type}')")


def _verify_parallel_insert(op: ParallelInsertSliceOp) -> None:
    require(isinstance(op.dest, BlockArgument), "may only insert into an output block argument")
    _verify_slice(op, tensor_type(op.dest), tensor_type(op.source), "source")
    parent = op.parent_op()
    require(parent is not None and parent.name == "scf.forall.in_parallel", "expected ParallelCombiningOpInterface parent")


def _verify_insert_slice(op: tensor.InsertSliceOp) -> None:
    _verify_slice(op, tensor_type(op.dest), tensor_type(op.source), "source")
    require(op.result.type == op.dest.type, "failed to verify that all of {dest, result} have same type")


def _verify_extract_slice(op: tensor.ExtractSliceOp) -> None:
    _verify_slice(op, tensor_type(op.source), tensor_type(op.result), "result")


def _verify_slice(op: Operation, whole: TensorType[Attribute], part: TensorType[Attribute], word: str) -> None:
    """Verifies that ``part`` has the type of the slice of ``whole`` that the op describes; ``word`` names ``part``."""
    expected = TensorType(whole.element_type, verify_slice(op, whole.get_shape()))
    require(part.element_type == whole.element_type and is_rank_reduced(expected.get_shape(), part.get_shape()),
            f"expected {word} type to be '{expected}' or a rank-reduced version, but got '{part}'")


def _verify_empty(op: tensor.EmptyOp) -> None:
    verify_dynamic_sizes(op.dynamic_sizes, op.tensor.type.get_shape())


def _verify_dim(op: tensor.DimOp) -> None:
    kind = op.source.type
    require(not isinstance(kind, TensorType) or kind.get_shape(),
            f"operand #0 must be non-0-ranked or unranked tensor, but got '{kind}'")


def _verify_cast(op: tensor.CastOp) -> None:
    source, result = any_tensor_type(op.source), any_tensor_type(op.dest)
    require(source.element_type == result.element_type and may_have_same_shape(source, result),
            f"operand type '{source}' and result type '{result}' are cast incompatible")


def _verify_access(op: tensor.ExtractOp | tensor.InsertOp) -> None:
    inserts = isinstance(op, tensor.InsertOp)
    source = tensor_type(op.dest if isinstance(op, tensor.InsertOp) else op.tensor)
    require(len(op.indices) == len(source.get_shape()),
            f"incorrect number of indices: {len(op.indices)} for {len(source.get_shape())} axes")
    value = op.scalar if isinstance(op, tensor.InsertOp) else op.result
    require(value.type == source.element_type, f"failed to verify that type of value matches element type of '{source}'")
    require(not inserts or op.result.type == source, "expected result type to match dest type")


def _verify_from_elements(op: tensor.FromElementsOp) -> None:
    kind = op.result.type
    require(DYNAMIC_INDEX not in kind.get_shape(),
            f"result #0 must be statically shaped tensor of any type values, but got '{kind}'")
    fits = len(op.elements) == math.prod(kind.get_shape()) and all(type_ == kind.element_type for type_ in op.elements.types)
    require(fits, "failed to verify that operand types match result element type")


@operation()
class RankOp(DialectOp):
    """Yields the number of axes of a tensor."""

    name = "tensor.rank"
    tensor = operand_def(_ANY)
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict $tensor `:` type($tensor)"


@operation(rules=[_verify_generate])
class GenerateOp(DialectOp):
    """Yields a tensor whose elements the body computes, each from its indices."""

    name = "tensor.generate"
    dynamicExtents = var_operand_def(IndexType)
    body = region_def("single_block")
    result = result_def(TensorType)
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = "$dynamicExtents $body attr-dict `:` type($result)"


@operation(rules=[_verify_bitcast])
class BitcastOp(DialectOp):
    """Reinterprets the bits of each element of a tensor as another type of the same width."""

    name = "tensor.bitcast"
    source = operand_def(_ANY)
    dest = result_def(_ANY)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($dest)"


@operation(rules=[_verify_gather])
class GatherOp(DialectOp):
    """Gathers the elements or slices of a tensor at the indices in another tensor."""

    name = "tensor.gather"
    source = operand_def(TensorType)
    indices = operand_def(TensorType)
    gather_dims = prop_def(_NUMBERS)
    unique = opt_prop_def(UnitAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = ("$source `[` $indices `]` `gather_dims` `(` $gather_dims `)` (`unique` $unique^)? attr-dict `:` "
                       "functional-type(operands, results)")


@operation(rules=[_verify_parallel_insert], side_effects=True)
class ParallelInsertSliceOp(DialectOp):
    """Inserts the slice of one iteration of ``scf.forall`` into the shared result."""

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


# -- pack and unpack ----------------------------------------------------------------------------------------------------

_NONE = DenseArrayBase.from_list(i64, [])
_TILES = ("`inner_dims_pos` `=` $inner_dims_pos `inner_tiles` `=` custom<DynamicIndexList>($inner_tiles, $static_inner_tiles) "
          "`into` $dest attr-dict `:` type($source) `->` type($dest)")


def _verify_tiles(op: PackOp | UnpackOp, unpacked: TensorType[Attribute],
                  packed: TensorType[Attribute]) -> tuple[list[int], list[int]]:
    """Verifies the rules that both ops share; returns the shape of the unpacked tensor and the sizes of the tiles."""
    axes, tiles = list(op.inner_dims_pos.get_values()), list(op.static_inner_tiles.get_values())
    order = list(op.outer_dims_perm.get_values())
    shape = list(unpacked.get_shape())
    rank = len(shape)
    require(0 not in tiles, "invalid zero tile factor")
    for name, places in (("inner_dims_pos", axes), ("outer_dims_perm", order)):
        valid = len(set(places)) == len(places) <= rank and all(0 <= axis < rank for axis in places)
        require(valid, f"invalid {name} vector")
    require(len(order) in (0, rank), "outer_dims_perm must be a permutation or empty")
    require(len(tiles) == len(axes), "tiling factors must equal the number of dimensions to tile")
    require(tiles.count(DYNAMIC_INDEX) == len(op.inner_tiles),
             f"expected {tiles.count(DYNAMIC_INDEX)} dynamic inner_tiles, got {len(op.inner_tiles)}")
    require(len(packed.get_shape()) == rank + len(tiles),
             "packed rank != (unpacked rank + num tiling factors), got "
             f"{len(packed.get_shape())} != {rank + len(tiles)}")
    require(packed.element_type == unpacked.element_type, "expected source and destination to have the same element type")
    outer = list(shape)
    for axis, tile in zip(axes, tiles, strict=True):
        outer[axis] = DYNAMIC_INDEX if DYNAMIC_INDEX in (outer[axis], tile) else -(-outer[axis] // tile)
    if order:
        outer = [outer[axis] for axis in order]
    expected = [*outer, *tiles]
    got = packed.get_shape()
    fits = all(DYNAMIC_INDEX in (want, have) or want <= have for want, have in zip(outer, got, strict=False))
    require(fits, "the shape of output is not large enough to hold the packed data. Expected at least "
                   f"{TensorType(packed.element_type, expected)}, got {packed}")
    fits = all(DYNAMIC_INDEX in (want, have) or want == have for want, have in zip(tiles, got[rank:], strict=True))
    require(fits, "mismatch in inner tile sizes specified and shaped of tiled dimension in the packed type")
    return shape, tiles


def _verify_pack(op: PackOp) -> None:
    shape, tiles = _verify_tiles(op, tensor_type(op.source), tensor_type(op.dest))
    if op.padding_value is None:
        whole = all(DYNAMIC_INDEX in (shape[axis], tile) or shape[axis] % tile == 0
                    for axis, tile in zip(op.inner_dims_pos.get_values(), tiles, strict=True))
        require(whole, "invalid tile factor or output size provided. "
                        "Only full tiles are supported when padding_value is not set")
    elif op.padding_value.type != tensor_type(op.source).element_type:
        require(False, f"expected padding_value has '{tensor_type(op.source).element_type}' but got: '{op.padding_value.type}'")


def _verify_unpack(op: UnpackOp) -> None:
    _verify_tiles(op, tensor_type(op.dest), tensor_type(op.source))


@operation(rules=[_verify_pack])
class PackOp(DialectOp):
    """Rearranges a tensor into tiles: ``tensor.pack %t inner_dims_pos = [0, 1] inner_tiles = [8, %n] into %d : T -> U``."""

    name = "tensor.pack"
    DEST: ClassVar = VarConstraint("DEST", base(TensorType))
    source = operand_def(TensorType)
    dest = operand_def(DEST)
    padding_value = opt_operand_def()
    inner_tiles = var_operand_def(IndexType)
    outer_dims_perm = prop_def(_NUMBERS, default_value=_NONE)
    inner_dims_pos = prop_def(_NUMBERS)
    static_inner_tiles = prop_def(_NUMBERS)
    result = result_def(DEST)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (DynamicIndexList,)
    assembly_format = ("$source (`padding_value` `(` $padding_value^ `:` type($padding_value) `)`)? "
                       f"(`outer_dims_perm` `=` $outer_dims_perm^)? {_TILES}")


@operation(rules=[_verify_unpack])
class UnpackOp(DialectOp):
    """Rearranges a tensor of tiles into a tensor without tiles, the inverse of ``tensor.pack``.

    An example is ``tensor.unpack %t inner_dims_pos = [0] inner_tiles = [8] into %d : T -> U``.
    """

    name = "tensor.unpack"
    DEST: ClassVar = VarConstraint("DEST", base(TensorType))
    source = operand_def(TensorType)
    dest = operand_def(DEST)
    inner_tiles = var_operand_def(IndexType)
    outer_dims_perm = prop_def(_NUMBERS, default_value=_NONE)
    inner_dims_pos = prop_def(_NUMBERS)
    static_inner_tiles = prop_def(_NUMBERS)
    result = result_def(DEST)
    traits = traits_def(Pure())
    custom_directives = (DynamicIndexList,)
    assembly_format = f"$source (`outer_dims_perm` `=` $outer_dims_perm^)? {_TILES}"


Tensor = extend_dialect(
    tensor.Tensor, RankOp, GenerateOp, BitcastOp, GatherOp, ParallelInsertSliceOp, PackOp, UnpackOp,
    replace_rules(tensor.ReshapeOp, _verify_reshape, source=_ANY, result=_ANY),
    rules={tensor.ExpandShapeOp: _verify_expand_shape, tensor.CollapseShapeOp: _verify_collapse_shape,
           tensor.PadOp: _verify_pad, tensor.EmptyOp: _verify_empty, tensor.CastOp: _verify_cast, tensor.DimOp: _verify_dim,
           tensor.ExtractOp: _verify_access, tensor.InsertOp: _verify_access, tensor.FromElementsOp: _verify_from_elements,
           tensor.ExtractSliceOp: _verify_extract_slice, tensor.InsertSliceOp: _verify_insert_slice})
