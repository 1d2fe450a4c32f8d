"""Verification rules of MLIR that several dialects share: element types, shapes, layouts, slices, collapsed axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from typing_extensions import TypeVar
from xdsl.dialects import memref, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    ShapedType,
    Signedness,
    StridedLayoutAttr,
    TensorType,
    UnrankedMemRefType,
    UnrankedTensorType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import AttrConstraint, IntConstraint, VerificationContext

from tilelang_npu.dialects.ir.declaration import require

Size: TypeAlias = int | None
"""A static stride or offset; None if it is dynamic."""


def is_signless(type_: Attribute) -> bool:
    """Whether a type is a signless integer."""
    return isinstance(type_, IntegerType) and type_.signedness.data is Signedness.SIGNLESS


def is_signless_or_index(type_: Attribute) -> bool:
    """Whether a type is a signless integer or an index."""
    return is_signless(type_) or isinstance(type_, IndexType)


def is_float(type_: Attribute) -> bool:
    """Whether a type is a floating-point type."""
    return isinstance(type_, AnyFloat)


@dataclass(frozen=True)
class Like(AttrConstraint[Attribute]):
    """Constrains a type to a scalar of some kind, or a vector or tensor of such scalars.

    Attributes:
        holds: whether a scalar type is of the kind.
        text: the description of the kind in the error message.
        memrefs: whether memrefs of such scalars are accepted too.
    """

    holds: Callable[[Attribute], bool]
    text: str
    memrefs: bool = False

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        containers: tuple[type[TensorType | UnrankedTensorType | VectorType | MemRefType], ...] = (
            TensorType, UnrankedTensorType, VectorType)
        if self.memrefs:
            containers = (*containers, MemRefType)
        element = attr.element_type if isinstance(attr, containers) else attr
        require(self.holds(element), f"must be {self.text}-like, but got '{attr}'")

    def mapping_type_vars(self, type_var_mapping: Mapping[TypeVar, AttrConstraint | IntConstraint]) -> Like:
        return self


def tensor_type(value: SSAValue) -> TensorType[Attribute]:
    """Returns the type of a value that is a ranked tensor, as the declaration of its op has verified."""
    assert isinstance(value.type, TensorType)
    return value.type


def vector_type(value: SSAValue) -> VectorType[Attribute]:
    """Returns the type of a value that is a vector, as the declaration of its op has verified."""
    assert isinstance(value.type, VectorType)
    return value.type


def memref_type(value: SSAValue) -> MemRefType[Attribute]:
    """Returns the type of a value that is a ranked memref, as the declaration of its op has verified."""
    assert isinstance(value.type, MemRefType)
    return value.type


def any_memref_type(value: SSAValue) -> MemRefType[Attribute] | UnrankedMemRefType[Attribute]:
    """Returns the type of a value that is a memref, ranked or unranked, as the declaration of its op has verified."""
    assert isinstance(value.type, (MemRefType, UnrankedMemRefType))
    return value.type


def any_tensor_type(value: SSAValue) -> TensorType[Attribute] | UnrankedTensorType[Attribute]:
    """Returns the type of a value that is a tensor, ranked or unranked, as the declaration of its op has verified."""
    assert isinstance(value.type, (TensorType, UnrankedTensorType))
    return value.type


INTEGERS = Like(is_signless, "signless-integer")
WHOLE = Like(is_signless_or_index, "signless-integer")
FLOATS = Like(is_float, "floating-point")
BOOLS = Like(lambda type_: type_ == i1, "bool")


def with_elements(kind: Attribute, element: Attribute) -> Attribute:
    """Returns a type like ``kind`` with the element type ``element``; returns ``element`` if ``kind`` has no elements."""
    if isinstance(kind, TensorType):
        return TensorType(element, kind.shape, kind.encoding)
    if isinstance(kind, VectorType):
        return VectorType(element, kind.shape, kind.scalable_dims)
    if isinstance(kind, MemRefType):
        return MemRefType(element, kind.shape, kind.layout, kind.memory_space)
    return UnrankedTensorType(element) if isinstance(kind, UnrankedTensorType) else element


def may_be_equal(one: int, other: int) -> bool:
    """Whether two sizes can be equal at run time: they are equal, or one of them is dynamic."""
    return one == other or DYNAMIC_INDEX in (one, other)


def may_have_same_shape(one: Attribute, other: Attribute) -> bool:
    """Whether values of two types can have the same shape at run time.

    A dynamic size can equal any size, an unranked type any shape, and a scalar only a scalar.
    """
    unranked = (UnrankedTensorType, UnrankedMemRefType)
    shaped = [isinstance(type_, (ShapedType, *unranked)) for type_ in (one, other)]
    if not all(shaped):
        return not any(shaped)
    if isinstance(one, unranked) or isinstance(other, unranked):
        return True
    assert isinstance(one, ShapedType)
    assert isinstance(other, ShapedType)
    left, right = one.get_shape(), other.get_shape()
    return len(left) == len(right) and all(map(may_be_equal, left, right))


def verify_one_type(op: Operation) -> None:
    """Verifies MLIR's trait ``SameOperandsAndResultType``.

    The operands must have the same element type and shapes that can be equal at run time. The results must have exactly the
    type of the first operand.
    """
    first = op.operand_types[0]
    for type_ in op.operand_types[1:]:
        require(_element(type_) == _element(first) and same_shape(first, type_), "requires the same type for all operands")
    for type_ in op.result_types:
        require(type_ == first, f"result type '{type_}' is not that of the operands, '{first}'")


def same_shape(one: Attribute, other: Attribute) -> bool:
    """Whether both types are of one kind (tensor, vector, memref or scalar) and their shapes can be equal at run time."""
    families = (TensorType, VectorType, MemRefType, UnrankedTensorType, UnrankedMemRefType)
    return all(isinstance(one, family) == isinstance(other, family) for family in families) and may_have_same_shape(one, other)


def _element(type_: Attribute) -> Attribute:
    return getattr(type_, "element_type", type_)


def strided(type_: MemRefType[Attribute]) -> tuple[list[Size], Size] | None:
    """Returns the strides and the offset of a memref type; None if its layout is not strided."""
    strides = type_.get_strides()
    return None if strides is None else (list(strides), type_.get_offset())


def times(*factors: Size) -> Size:
    """Returns the product of strides or offsets: 0 if a factor is 0, else None if a factor is dynamic."""
    if 0 in factors:
        return 0
    known = [factor for factor in factors if factor is not None]
    return prod(known) if len(known) == len(factors) else None


def offset_of_slice(whole: MemRefType[Attribute], starts: Sequence[Size]) -> Size:
    """Returns the offset for the memref type of a slice, in elements from the start of the buffer; None if it is dynamic.

    Args:
        whole: the type of the memref that the slice is taken from.
        starts: the first index of the slice along each axis; None for a dynamic one.
    """
    layout = strided(whole)
    if layout is None:
        return None
    strides, offset = layout
    for start, stride in zip(starts, strides, strict=True):
        moved = times(start, stride)
        offset = None if offset is None or moved is None else offset + moved
    return offset


def unless_dynamic(number: int) -> Size:
    """Returns a number unchanged, and None for ``DYNAMIC_INDEX``, which marks a dynamic value."""
    return None if number == DYNAMIC_INDEX else number


def is_row_by_row(type_: MemRefType[Attribute]) -> bool:
    """Whether a memref type states no layout, or the layout that MLIR treats as none: one axis of stride 1 at offset 0."""
    return isinstance(type_.layout, NoneAttr) or type_.layout == StridedLayoutAttr([1], 0)


def with_layout(type_: MemRefType[Attribute], shape: Sequence[int], strides: Sequence[Size],
                offset: Size) -> MemRefType[Attribute]:
    """Returns a memref type with the element type and memory space of ``type_``, another shape and a strided layout."""
    return MemRefType(type_.element_type, shape, StridedLayoutAttr(strides, offset), type_.memory_space)


def same_memref(one: MemRefType[Attribute], other: MemRefType[Attribute]) -> bool:
    """Whether two memref types are equal, if a layout that MLIR treats as none (:func:`is_row_by_row`) counts as none."""
    plain = [MemRefType(type_.element_type, type_.shape, NoneAttr(), type_.memory_space) if is_row_by_row(type_) else type_
             for type_ in (one, other)]
    return plain[0] == plain[1]


def verify_dynamic_sizes(given: Sequence[object], shape: Sequence[int]) -> None:
    """Verifies that the number of values in ``given`` is the number of dynamic sizes in ``shape``."""
    expected = list(shape).count(DYNAMIC_INDEX)
    require(len(given) == expected, f"incorrect number of dynamic sizes, has {len(given)}, expected {expected}")


def verify_slice(op: Operation, whole: Sequence[int]) -> list[int]:
    """Verifies the numbers of offsets, sizes and strides of a slice, and returns the static sizes.

    A slice that ends outside of its source is accepted, as in LLVM 19; the simulator reports the access when it executes the
    op.

    Args:
        op: an op with ``static_offsets``, ``static_sizes`` and ``static_strides``, and operands for the dynamic values.
        whole: the shape of the source.
    """
    parts = {}
    for word in ("offset", "size", "stride"):
        stated = list(getattr(op, f"static_{word}s").get_values())
        require(len(stated) == len(whole), f"expected {len(whole)} {word} values, got {len(stated)}")
        markers = stated.count(DYNAMIC_INDEX)
        require(markers == len(getattr(op, f"{word}s")), f"expected {markers} dynamic {word} values")
        if word != "stride":
            require(all(number >= 0 for number in stated if number != DYNAMIC_INDEX), f"expected {word}s to be non-negative")
        parts[word] = stated
    return parts["size"]


def is_rank_reduced(sizes: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether ``shape`` equals ``sizes`` after removing none, some or all of the sizes 1."""
    rest = list(shape)
    for size in sizes:
        if rest and rest[0] == size:
            rest.pop(0)
        elif size != 1:
            return False
    return not rest


def verify_regrouping(collapsed: Sequence[int], expanded: Sequence[int], groups: Sequence[Sequence[int]]) -> None:
    """Verifies that each axis of ``collapsed`` has the size of the product of a group of adjacent axes of ``expanded``."""
    require(len(groups) == len(collapsed),
            f"invalid number of reassociation groups: found {len(groups)}, expected {len(collapsed)}")
    following = 0
    for axis, (size, group) in enumerate(zip(collapsed, groups, strict=True)):
        require(group, "reassociation indices must not be empty")
        for place in group:
            require(place == following, "reassociation indices must be contiguous")
            require(place < len(expanded), f"reassociation index {place} is out of bounds")
            following += 1
        sizes = [expanded[place] for place in group]
        require((size == DYNAMIC_INDEX) == (DYNAMIC_INDEX in sizes),
                f"collapsed dim ({axis}) must be dynamic if and only if reassociation group is dynamic")
        require(DYNAMIC_INDEX in sizes or prod(sizes) == size,
                f"collapsed dim size ({size}) must equal reassociation group size ({prod(sizes)})")
    if collapsed:
        require(following == len(expanded), f"expanded rank ({len(expanded)}) inconsistent with number of reassociation indices"
                                            f" ({following})")
    else:
        require(all(size == 1 for size in expanded), "rank 0 memrefs can only be extended/collapsed with/from ones")


def verify_output_shape(op: memref.ExpandShapeOp | tensor.ExpandShapeOp, values: Sequence[object], shape: Sequence[int], *,
                        sizes: bool = True) -> None:
    """Verifies that the output shape that an op states fits the type of its result.

    Args:
        op: an op with ``static_output_shape``.
        values: the operands for the dynamic sizes.
        shape: the shape of the result's type.
        sizes: whether the static sizes are compared too; LLVM 19 compares them for memrefs, and not for tensors.
    """
    stated = list(op.static_output_shape.get_values())
    require(len(stated) == len(shape), f"expected number of static shape dims to be equal to the output rank ({len(shape)})"
                                       f" but found {len(stated)} inputs instead")
    markers = stated.count(DYNAMIC_INDEX)
    require(markers == len(values),
            f"mismatch in dynamic dims in output_shape and static_output_shape: static_output_shape has {markers} dynamic dims"
            f" while output_shape has {len(values)} values")
    for axis, (size, given) in enumerate(zip(shape, stated, strict=True) if sizes else ()):
        require(may_be_equal(size, given), f"invalid output shape provided at pos {axis}")


def axis_groups(reassociation: Iterable[Iterable[IntegerAttr]]) -> list[list[int]]:
    """Returns the axes of each group of a ``reassociation`` attribute."""
    return [[place.value.data for place in group] for group in reassociation]
