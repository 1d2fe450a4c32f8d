"""vector: verification rules for shapes, masks and kinds of reduction, of which xDSL verifies only a part; four ops that xDSL
lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects import vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    FixedBitwidthType,
    IndexType,
    IntegerType,
    MemRefType,
    TensorType,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.vector import CombiningKindAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.irdl import AnyAttr, IRDLOperation, VarConstraint, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure

from tilelang_npu.dialects.ir.declaration import DialectOp, extend_dialect, operation, require
from tilelang_npu.dialects.mlir.rules import is_float, memref_type, vector_type

_OF_INTEGERS = ("minui", "minsi", "maxui", "maxsi", "and", "or", "xor")
_OF_FLOATS = ("minnumf", "maxnumf", "minimumf", "maximumf")
_BITS_OF_INDEX = 64


def _element(type_: Attribute) -> Attribute:
    return type_.element_type if isinstance(type_, VectorType) else type_


def _is_number(type_: Attribute) -> bool:
    return isinstance(type_, (IntegerType, IndexType)) or is_float(type_)


def _verify_source(op: vector.PrintOp | vector.BroadcastOp) -> None:
    type_ = op.source.type
    require(isinstance(type_, VectorType) or _is_number(type_), f"source '{type_}' is no number and no vector")


def _bits(type_: Attribute) -> int:
    if isinstance(type_, IndexType):
        return _BITS_OF_INDEX
    assert isinstance(type_, FixedBitwidthType)
    return type_.bitwidth


# -- accesses to memory ------------------------------------------------------------------------------------------------

def _verify_memory(base: MemRefType[Attribute], type_: VectorType[Attribute], indices: Sequence[SSAValue]) -> None:
    """Verifies that the last axis is contiguous, that the element types are equal, and that there is an index per axis."""
    strides = base.get_strides()
    require(type_.element_type == base.element_type or type_ == base.element_type,
            f"base element type '{base.element_type}' and vector '{type_}' do not match")
    require(strides is not None and (not strides or strides[-1] == 1), "most minor memref dim must have unit stride")
    require(len(indices) == len(base.get_shape()), f"requires {len(base.get_shape())} indices")


def _verify_load(op: vector.LoadOp) -> None:
    _verify_memory(memref_type(op.base), vector_type(op.result), op.indices)


def _verify_store(op: vector.StoreOp) -> None:
    _verify_memory(memref_type(op.base), vector_type(op.vector), op.indices)


def _verify_masked_load(op: vector.MaskedLoadOp) -> None:
    _verify_memory(memref_type(op.base), vector_type(op.result), op.indices)
    _verify_mask_shape(op.mask, op.result)
    require(op.pass_thru.type == op.result.type, "expected pass_thru of same type as result type")


def _verify_masked_store(op: vector.MaskedStoreOp) -> None:
    _verify_memory(memref_type(op.base), vector_type(op.value_to_store), op.indices)
    _verify_mask_shape(op.mask, op.value_to_store)


def _verify_mask_shape(mask: SSAValue, value: SSAValue) -> None:
    require(vector_type(value).get_shape() == vector_type(mask).get_shape(),
            f"expected the shape of '{value.type}' to match that of the mask, '{mask.type}'")


# -- parts and shapes of vectors -----------------------------------------------------------------------------------------

def _verify_broadcast(op: vector.BroadcastOp) -> None:
    source, result = op.source.type, vector_type(op.vector)
    require(_element(source) == result.element_type, "source operand and result have same element type")
    _verify_source(op)
    sizes = source.get_shape() if isinstance(source, VectorType) else ()
    shape = result.get_shape()
    require(len(sizes) <= len(shape), f"source rank {len(sizes)} higher than destination rank {len(shape)}")
    for size, wanted in zip(sizes, shape[len(shape) - len(sizes):], strict=True):
        require(size in (1, wanted), f"dimension mismatch ({size} vs. {wanted})")


def _verify_position(op: vector.ExtractOp | vector.InsertOp, shape: Sequence[int]) -> Sequence[int]:
    stated = list(op.static_position.get_values())
    require(stated.count(DYNAMIC_INDEX) == len(op.dynamic_position), "mismatch between dynamic and static positions")
    require(len(stated) <= len(shape), f"expected position attribute of rank no greater than vector rank {len(shape)}")
    for number, (place, size) in enumerate(zip(stated, shape, strict=False), 1):
        require(place == DYNAMIC_INDEX or 0 <= place < size,
                f"expected position attribute #{number} to be a non-negative integer smaller than the corresponding vector"
                f" dimension, {size}, got {place}")
    return stated


def _verify_extract(op: vector.ExtractOp) -> None:
    whole = vector_type(op.vector)
    rest = whole.get_shape()[len(_verify_position(op, whole.get_shape())):]
    inferred = VectorType(whole.element_type, rest) if rest else whole.element_type
    alone = VectorType(whole.element_type, [1])
    require(op.result.type == inferred or (not rest and op.result.type == alone),
            f"inferred type '{inferred}' is incompatible with return type '{op.result.type}'")


def _verify_insert(op: vector.InsertOp) -> None:
    source, whole = op.source.type, vector_type(op.dest)
    stated = _verify_position(op, whole.get_shape())
    rank = len(source.get_shape()) if isinstance(source, VectorType) else 0
    require(len(stated) + rank == len(whole.get_shape()), f"expected position attribute rank + source rank ({len(stated)} +"
                                                          f" {rank}) to match dest vector rank ({len(whole.get_shape())})")


def _verify_shuffle(op: vector.ShuffleOp) -> None:
    first, second, result = vector_type(op.v1).get_shape(), vector_type(op.v2).get_shape(), vector_type(op.result).get_shape()
    mask = op.mask.get_values()
    require(len(first) == len(second) and len(result) == max(len(first), 1), "rank mismatch")
    require(first[1:] == second[1:] == result[1:], "dimension mismatch")
    require(mask and len(mask) == result[0], f"mask length mismatch: {len(mask)} for a result of {result[0]}")
    places = sum(shape[0] if shape else 1 for shape in (first, second))
    for number, place in enumerate(mask, 1):
        require(0 <= place < places, f"mask index #{number} out of range: {place} of {places}")


def _verify_bitcast(op: vector.BitcastOp) -> None:
    source, result = vector_type(op.source), vector_type(op.result)
    one, other = source.get_shape(), result.get_shape()
    require(len(one) == len(other), "failed to verify that all of {source, result} have same rank")
    for axis, (size, wanted) in enumerate(zip(one[:-1], other[:-1], strict=True)):
        require(size == wanted, f"dimension size mismatch at: {axis}")
    rows = [_bits(type_.element_type) * (type_.get_shape() or (1,))[-1] for type_ in (source, result)]
    require(rows[0] == rows[1], f"source/result bitwidth of the minor 1-D vectors must be equal, got {rows[0]} and {rows[1]}")


def _verify_create_mask(op: vector.CreateMaskOp) -> None:
    rank = len(vector_type(op.mask_vector).get_shape())
    require(len(op.mask_dim_sizes) == max(rank, 1),
            f"must specify an operand for each result vector dimension: {max(rank, 1)}, got {len(op.mask_dim_sizes)}")


def _verify_reduction(op: vector.ReductionOp) -> None:
    rank, element, kind = len(vector_type(op.vector).get_shape()), vector_type(op.vector).element_type, str(op.kind.data)
    require(rank <= 1, f"unsupported reduction rank: {rank}")
    fits = is_float(element) if kind in _OF_FLOATS else _is_number(element) and not (kind in _OF_INTEGERS and is_float(element))
    require(fits, f"unsupported reduction type '{element}' for kind '{kind}'")



# -- transfers between a vector and a part of a tensor or memref ------------------------------------------------------------

def _source_type(op: vector.TransferReadOp | vector.TransferWriteOp) -> TensorType[Attribute] | MemRefType[Attribute]:
    type_ = op.source.type
    assert isinstance(type_, (TensorType, MemRefType))
    return type_


def _verify_transfer(op: vector.TransferReadOp | vector.TransferWriteOp, type_: VectorType[Attribute]) -> None:
    whole, map_ = _source_type(op), op.permutation_map.data
    element, shape = whole.element_type, type_.get_shape()
    inner = element.get_shape() if isinstance(element, VectorType) else ()
    require(len(op.indices) == len(whole.get_shape()), f"requires {len(whole.get_shape())} indices")
    require(map_.num_symbols == 0, "requires permutation_map without symbols")
    require(map_.num_dims == len(whole.get_shape()), "requires a permutation_map with input dims of the same rank as the source"
                                                     " type")
    require(len(map_.results) == len(shape) - len(inner),
            "requires a permutation_map with result dims of the same rank as the vector type")
    _verify_permutation(map_)
    _verify_widths(element, type_)
    require(op.mask is None or not inner, "does not support masks with vector element type")
    if op.mask is not None:
        wanted = VectorType(i1, _mask_shape(map_, shape))
        require(op.mask.type == wanted, f"inferred mask type ('{wanted}') and mask operand type ('{op.mask.type}') don't match")
    require(len(op.in_bounds) == len(map_.results),
            f"expects the in_bounds attr of same rank as permutation_map results: {map_} vs"
            f" inBounds of size {len(op.in_bounds)}")


def _verify_widths(element: Any, type_: VectorType[Attribute]) -> None:
    given = type_.element_type
    one = _element(element)
    require(isinstance(one, IndexType) == isinstance(given, IndexType),
            f"element type of source is '{one}', expected element type of vector not to be '{given}'")
    row = _bits(given) * (type_.get_shape() or (1,))[-1]
    of_source = _bits(one) * ((element.get_shape() or (1,))[-1] if isinstance(element, VectorType) else 1)
    require(row % of_source == 0, "requires the bitwidth of the minor 1-D vector to be an integral multiple of the bitwidth of"
                                  f" the source element type: {row} and {of_source}")


def _verify_permutation(map_: AffineMap) -> None:
    places = []
    for result in map_.results:
        require(isinstance(result, AffineDimExpr) or result == AffineConstantExpr(0),
                "requires a projected permutation_map (at most one dim or the zero constant can appear in each result)")
        if isinstance(result, AffineDimExpr):
            places.append(result.position)
    require(len(places) == len(set(places)), "requires a permutation_map that is a permutation (found one dim used more than"
                                             " once)")


def _mask_shape(map_: AffineMap, shape: Sequence[int]) -> list[int]:
    """The shape of the mask of a transfer: the sizes of the transferred axes, in the order of the tensor or memref."""
    sizes = {result.position: size for result, size in zip(map_.results, shape, strict=True)
             if isinstance(result, AffineDimExpr)}
    return [sizes[place] for place in sorted(sizes)] or [1]


def _verify_transfer_read(op: vector.TransferReadOp) -> None:
    _verify_transfer(op, vector_type(op.result))
    require(op.padding.type == _source_type(op).element_type, "requires formal padding and source of the same elemental type")


def _verify_transfer_write(op: vector.TransferWriteOp) -> None:
    require(not op.has_broadcast_dim(), "should not have broadcast dimensions")
    _verify_transfer(op, vector_type(op.vector))
    result = None if op.result is None else op.result.type
    wanted = op.source.type if isinstance(op.source.type, TensorType) else None
    require(result == wanted, f"result type '{result}' is not that of the source, '{wanted}'")


# -- ops that xDSL lacks ---------------------------------------------------------------------------------------------------


@operation()
class ShapeCastOp(DialectOp):
    """Views the elements of a vector, in row-major order, as a vector of another shape."""

    name = "vector.shape_cast"
    source = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue | Operation, result: Attribute) -> None:
        IRDLOperation.__init__(self, operands=[source], result_types=[result])

    def verify_(self) -> None:
        one, other = vector_type(self.source), vector_type(self.result)
        require(one.element_type == other.element_type, "has different source and result element types")
        require(math.prod(one.get_shape()) == math.prod(other.get_shape()), "has different source and result element counts")


@operation()
class MultiDimReductionOp(DialectOp):
    """Reduces the axes ``reduction_dims`` of a vector and combines the result with ``acc``."""

    name = "vector.multi_reduction"
    KIND: ClassVar = VarConstraint("KIND", AnyAttr())
    kind = prop_def(CombiningKindAttr)
    source = operand_def(VectorType)
    acc = operand_def(KIND)
    reduction_dims = prop_def(DenseArrayBase.constr(i64))
    dest = result_def(KIND)
    traits = traits_def(Pure())
    assembly_format = "$kind `,` $source `,` $acc attr-dict $reduction_dims `:` type($source) `to` type($dest)"

    def __init__(self, kind: CombiningKindAttr, source: SSAValue | Operation, acc: SSAValue | Operation,
                 dims: Sequence[int]) -> None:
        given = SSAValue.get(acc)
        IRDLOperation.__init__(self, operands=[source, given], result_types=[given.type],
                               properties={"kind": kind, "reduction_dims": DenseArrayBase.from_list(i64, list(dims))})

    def verify_(self) -> None:
        whole = vector_type(self.source)
        dims = list(self.reduction_dims.get_values())
        rank = len(whole.get_shape())
        require(all(0 <= dim < rank for dim in dims) and len(dims) == len(set(dims)),
                f"reduction dims {dims} are not distinct axes of '{whole}'")
        kept = [size for axis, size in enumerate(whole.get_shape()) if axis not in dims]
        wanted = VectorType(whole.element_type, kept) if kept else whole.element_type
        require(self.dest.type == wanted, f"destination type '{self.dest.type}' is incompatible with source type '{whole}'")


def _verify_indexed(op: GatherOp | ScatterOp, value: SSAValue, accessed: str) -> None:
    base, index, mask = op.base.type, vector_type(op.index_vec), vector_type(op.mask)
    assert isinstance(base, (TensorType, MemRefType))
    type_ = vector_type(value)
    require(type_.element_type == base.element_type, f"base and {accessed} element type should match")
    require(len(op.offsets) == len(base.get_shape()), f"requires {len(base.get_shape())} indices")
    require(isinstance(index.element_type, (IntegerType, IndexType)), f"index vector '{index}' has no integers")
    require(index.get_shape() == type_.get_shape(), f"expected {accessed} dim to match indices dim")
    require(mask.get_shape() == type_.get_shape() and mask.element_type == i1, f"expected {accessed} dim to match mask dim")


@operation(reads=("base",))
class GatherOp(DialectOp):
    """Reads ``base[offsets + index_vec[i]]`` for each lane that the mask selects; other lanes are those of ``pass_thru``."""

    name = "vector.gather"
    base = operand_def(MemRefType)
    offsets = var_operand_def(IndexType)
    index_vec = operand_def(VectorType)
    mask = operand_def(VectorType)
    pass_thru = operand_def(VectorType)
    result = result_def(VectorType)
    assembly_format = ("$base `[` $offsets `]` `[` $index_vec `]` `,` $mask `,` $pass_thru attr-dict `:` type($base) `,`"
                       " type($index_vec) `,` type($mask) `,` type($pass_thru) `into` type($result)")

    def __init__(self, base: SSAValue, offsets: Sequence[SSAValue], index_vec: SSAValue, mask: SSAValue,
                 pass_thru: SSAValue) -> None:
        IRDLOperation.__init__(self, operands=[base, list(offsets), index_vec, mask, pass_thru], result_types=[pass_thru.type])

    def verify_(self) -> None:
        _verify_indexed(self, self.result, "result")
        require(self.pass_thru.type == self.result.type, "expected pass_thru of same type as result type")


@operation(writes=("base",))
class ScatterOp(DialectOp):
    """Writes each lane of a vector that the mask selects to ``base[offsets + index_vec[i]]``."""

    name = "vector.scatter"
    base = operand_def(MemRefType)
    offsets = var_operand_def(IndexType)
    index_vec = operand_def(VectorType)
    mask = operand_def(VectorType)
    value_to_store = operand_def(VectorType)
    assembly_format = ("$base `[` $offsets `]` `[` $index_vec `]` `,` $mask `,` $value_to_store attr-dict `:` type($base) `,`"
                       " type($index_vec) `,` type($mask) `,` type($value_to_store)")

    def __init__(self, base: SSAValue, offsets: Sequence[SSAValue], index_vec: SSAValue, mask: SSAValue,
                 value: SSAValue) -> None:
        IRDLOperation.__init__(self, operands=[base, list(offsets), index_vec, mask, value])

    def writes_partially(self) -> bool:
        """Whether the op may leave elements unwritten: it writes only those that the indices name."""
        return True

    def verify_(self) -> None:
        _verify_indexed(self, self.value_to_store, "valueToStore")


Vector = extend_dialect(
    vector.Vector, ShapeCastOp, MultiDimReductionOp, GatherOp, ScatterOp,
    rules={vector.LoadOp: _verify_load, vector.StoreOp: _verify_store, vector.MaskedLoadOp: _verify_masked_load,
           vector.MaskedStoreOp: _verify_masked_store, vector.BroadcastOp: _verify_broadcast,
           vector.ExtractOp: _verify_extract, vector.InsertOp: _verify_insert, vector.ShuffleOp: _verify_shuffle,
           vector.BitcastOp: _verify_bitcast, vector.PrintOp: _verify_source, vector.CreateMaskOp: _verify_create_mask,
           vector.ReductionOp: _verify_reduction, vector.TransferReadOp: _verify_transfer_read,
           vector.TransferWriteOp: _verify_transfer_write})
