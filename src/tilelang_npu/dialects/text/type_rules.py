"""Checks MLIR's rules for builtin types that xDSL does not check: element types of memrefs, tensors and vectors, and layouts.

The parser applies the rules to every type in a text. MLIR applies them when it constructs a type, so a violation is an error of
the text and not of an op.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    FunctionType,
    IndexType,
    IntegerType,
    MemRefType,
    NoneType,
    StridedLayoutAttr,
    TensorType,
    TupleType,
    UnrankedMemRefType,
    UnrankedTensorType,
    VectorType,
)
from xdsl.ir import Attribute

__all__ = ["type_fault"]

_NUMBERS = (IntegerType, IndexType, AnyFloat)
_NO_ELEMENTS = (NoneType, TupleType, FunctionType, TensorType, UnrankedTensorType)
_BUFFERS = (MemRefType, UnrankedMemRefType)


def type_fault(type_: Attribute) -> str | None:
    """Returns MLIR's error message for an invalid type; None if the type is valid."""
    if isinstance(type_, _BUFFERS):
        element: Attribute = type_.element_type
        if isinstance(element, _NO_ELEMENTS) or element.name.startswith("llvm."):
            return f"invalid memref element type: {element}"
        return _layout_fault(type_)
    if isinstance(type_, (TensorType, UnrankedTensorType)):
        if isinstance(type_.element_type, (*_NO_ELEMENTS, *_BUFFERS)):
            return f"invalid tensor element type: {type_.element_type}"
        if isinstance(type_, TensorType) and isinstance(type_.encoding, StridedLayoutAttr):
            return "a tensor type cannot have a strided layout; only a memref type can"
    if isinstance(type_, VectorType):
        return _vector_fault(type_)
    return None


def _layout_fault(type_: MemRefType | UnrankedMemRefType) -> str | None:
    if isinstance(type_, UnrankedMemRefType):
        if isinstance(type_.memory_space, (StridedLayoutAttr, AffineMapAttr)):
            return "cannot have affine map for unranked memref type"
        return None
    rank = len(type_.shape)
    for layout in (type_.layout, type_.memory_space):  # MLIR parses any number of layouts and keeps the last
        if isinstance(layout, StridedLayoutAttr) and len(layout.strides) != rank:
            return f"expected the number of strides to match the rank: {rank} != {len(layout.strides)}"
        if isinstance(layout, AffineMapAttr) and layout.data.num_dims != rank:
            return f"memref layout mismatch between rank and affine map: {rank} != {layout.data.num_dims}"
    return None


def _vector_fault(type_: VectorType[Attribute]) -> str | None:
    element, shape = type_.element_type, type_.get_shape()
    if not (isinstance(element, _NUMBERS) or element.name == "llvm.ptr"):
        return f"vector elements must be int/index/float type but got {element}"
    if any(size <= 0 for size in shape):
        return f"vector types must have positive constant sizes but got {', '.join(map(str, shape))}"
    return None
