"""Rules of MLIR on types that several dialects share: kinds of element types, shapes, layouts, slices, regrouped axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    IndexType,
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
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint, VerificationContext

from tilelang_npu.dialects.ir.declaration import require

Size: TypeAlias = int | None
"""A stride or an offset; None where it is dynamic."""


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
    """A scalar of some kind, or a vector or tensor of such scalars; ``text`` names the kind in the message."""

    holds: Callable[[Attribute], bool]
    text: str
    memrefs: bool = False

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        containers: tuple[type[Any], ...] = (TensorType, UnrankedTensorType, VectorType)
        if self.memrefs:
            containers = (*containers, MemRefType)
        element = attr.element_type if isinstance(attr, containers) else attr
        require(self.holds(element), f"must be {self.text}-like, but got '{attr}'")

    def mapping_type_vars(self, type_var_mapping: Any) -> Like:
        return self


INTEGERS = Like(is_signless, "signless-integer")
WHOLE = Like(is_signless_or_index, "signless-integer")
FLOATS = Like(is_float, "floating-point")
BOOLS = Like(lambda type_: type_ == i1, "bool")


def with_elements(kind: Attribute, element: Attribute) -> Attribute:
    """The type ``kind`` with another element type."""
    if isinstance(kind, TensorType):
        return TensorType(element, kind.shape, kind.encoding)
    if isinstance(kind, VectorType):
        return VectorType(element, kind.shape, kind.scalable_dims)
    if isinstance(kind, MemRefType):
        return MemRefType(element, kind.shape, kind.layout, kind.memory_space)
    return UnrankedTensorType(element) if isinstance(kind, UnrankedTensorType) else element


def may_be_equal(one: int, other: int) -> bool:
    """Whether two sizes are equal, or one of them is dynamic."""
    return one == other or DYNAMIC_INDEX in (one, other)


def may_have_same_shape(one: Attribute, other: Attribute) -> bool:
    """Whether the shapes of two types may be equal: dynamic sizes and unranked types fit any, scalars only scalars."""
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


def verify_one_type(op: Any) -> None:
    """Rule ``SameOperandsAndResultType``: all types may be equal, and results have exactly the type of the first operand."""
    first = op.operand_types[0]
    for type_ in op.operand_types[1:]:
        require(_element(type_) == _element(first) and same_shape(first, type_), "requires the same type for all operands")
    for type_ in op.result_types:
        require(type_ == first, f"result type '{type_}' is not that of the operands, '{first}'")


def same_shape(one: Attribute, other: Attribute) -> bool:
    """Whether both types are tensors, vectors, memrefs or scalars, and their shapes may be equal."""
    families = (TensorType, VectorType, MemRefType, UnrankedTensorType, UnrankedMemRefType)
    return all(isinstance(one, family) == isinstance(other, family) for family in families) and may_have_same_shape(one, other)


def _element(type_: Attribute) -> Attribute:
    return getattr(type_, "element_type", type_)


def strided(type_: MemRefType[Any]) -> tuple[list[Size], Size] | None:
    """The strides and the offset of a memref; None where its layout is not strided."""
    strides = type_.get_strides()
    return None if strides is None else (list(strides), type_.get_offset())


def times(*factors: Size) -> Size:
    """The product of factors; None where it is dynamic. A factor of 0 makes it 0 in any case."""
    if 0 in factors:
        return 0
    known = [factor for factor in factors if factor is not None]
    return prod(known) if len(known) == len(factors) else None


def offset_of_slice(whole: MemRefType[Any], starts: Sequence[Size]) -> Size:
    """The offset in the type of a slice: the distance of its first element from the start of the memory, in elements.

    Args:
        whole: the type of the memref that the slice is taken from.
        starts: the first index of the slice along each axis; None where it is dynamic.
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
    """A number of a list in which ``DYNAMIC_INDEX`` marks dynamic values; None for these."""
    return None if number == DYNAMIC_INDEX else number


def is_row_by_row(type_: MemRefType[Any]) -> bool:
    """Whether a memref has no layout, or one that MLIR treats as none: a single axis of stride 1 at offset 0."""
    return isinstance(type_.layout, NoneAttr) or type_.layout == StridedLayoutAttr([1], 0)


def with_layout(type_: MemRefType[Any], shape: Sequence[int], strides: Sequence[Size], offset: Size) -> MemRefType[Any]:
    """A memref type with another shape and a strided layout."""
    return MemRefType(type_.element_type, shape, StridedLayoutAttr(strides, offset), type_.memory_space)


def same_memref(one: MemRefType[Any], other: MemRefType[Any]) -> bool:
    """Whether two types are equal, where a layout that MLIR treats as none equals none."""
    plain = [MemRefType(type_.element_type, type_.shape, NoneAttr(), type_.memory_space) if is_row_by_row(type_) else type_
             for type_ in (one, other)]
    return plain[0] == plain[1]


def verify_dynamic_sizes(given: Sequence[Any], shape: Sequence[int]) -> None:
    """Verifies that there is a value for each dynamic axis."""
    expected = list(shape).count(DYNAMIC_INDEX)
    require(len(given) == expected, f"incorrect number of dynamic sizes, has {len(given)}, expected {expected}")


def verify_slice(op: Any, whole: Sequence[int]) -> list[int]:
    """Verifies the offsets, sizes and strides of a slice against its source, and returns the sizes.

    A slice that ends outside of its source is accepted, as in LLVM 19; executing it reports the read past the end.

    Args:
        op: has ``static_offsets``, ``static_sizes`` and ``static_strides``, and operands for the dynamic ones.
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
    """Whether a shape is ``sizes`` without some of the axes of size 1."""
    rest = list(shape)
    for size in sizes:
        if rest and rest[0] == size:
            rest.pop(0)
        elif size != 1:
            return False
    return not rest


def verify_regrouping(collapsed: Sequence[int], expanded: Sequence[int], groups: Sequence[Sequence[int]]) -> None:
    """Verifies that each axis of ``collapsed`` has the elements of a group of neighbouring axes of ``expanded``."""
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


def verify_output_shape(op: Any, values: Sequence[Any], shape: Sequence[int], *, sizes: bool = True) -> None:
    """Verifies that the sizes that an op states for its result, as numbers or values, fit the result's type.

    Args:
        op: has ``static_output_shape``.
        values: the sizes that are values.
        shape: the shape of the result's type.
        sizes: whether the numbers are compared; LLVM 19 compares them for memrefs, and not for tensors.
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


def axis_groups(reassociation: Iterable[Any]) -> list[list[int]]:
    """The axes of each group of a ``reassociation`` attribute."""
    return [[place.value.data for place in group] for group in reassociation]
