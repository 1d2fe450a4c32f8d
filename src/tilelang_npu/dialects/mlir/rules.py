"""What several dialects of MLIR ask of types: element types of one kind, shapes that may be equal, slices, regrouped axes."""

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
from xdsl.utils.exceptions import VerifyException

Size: TypeAlias = int | None
"""A stride or an offset; None where it is not known."""


def require(holds: object, message: str) -> None:
    """Reject the op unless something holds."""
    if not holds:
        raise VerifyException(message)


def is_signless(type_: Attribute) -> bool:
    """Whether a type is an integer without a sign of its own."""
    return isinstance(type_, IntegerType) and type_.signedness.data is Signedness.SIGNLESS


def is_whole(type_: Attribute) -> bool:
    """Whether a type is a signless integer or an index."""
    return is_signless(type_) or isinstance(type_, IndexType)


def is_float(type_: Attribute) -> bool:
    """Whether a type is a float of any format."""
    return isinstance(type_, AnyFloat)


@dataclass(frozen=True)
class Like(AttrConstraint[Attribute]):
    """A scalar of some kind, or a vector or tensor of such; ``text`` names the kind in the message."""

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
WHOLE = Like(is_whole, "signless-integer")
FLOATS = Like(is_float, "floating-point")
BOOLS = Like(lambda type_: type_ == i1, "bool")


def with_elements(kind: Attribute, element: Attribute) -> Attribute:
    """A type of the shape of another, with other elements."""
    if isinstance(kind, TensorType):
        return TensorType(element, kind.shape, kind.encoding)
    if isinstance(kind, VectorType):
        return VectorType(element, kind.shape, kind.scalable_dims)
    if isinstance(kind, MemRefType):
        return MemRefType(element, kind.shape, kind.layout, kind.memory_space)
    return UnrankedTensorType(element) if isinstance(kind, UnrankedTensorType) else element


def may_be_equal(one: int, other: int) -> bool:
    """Whether two sizes of axes may be equal."""
    return one == other or DYNAMIC_INDEX in (one, other)


def fitting_shapes(one: Attribute, other: Attribute) -> bool:
    """Whether two types may have one shape: one that is not known fits any, a number has none."""
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


def one_type(op: Any) -> None:
    """MLIR's ``SameOperandsAndResultType``: results have the type of the first operand, the others one that may be it."""
    first = op.operand_types[0]
    for type_ in op.operand_types[1:]:
        require(_element(type_) == _element(first) and same_shape(first, type_), "requires the same type for all operands")
    for type_ in op.result_types:
        require(type_ == first, f"result type '{type_}' is not that of the operands, '{first}'")


def same_shape(one: Attribute, other: Attribute) -> bool:
    """Whether both are tensors, vectors, memrefs or no such thing, and of shapes that may be one."""
    families = (TensorType, VectorType, MemRefType, UnrankedTensorType, UnrankedMemRefType)
    return all(isinstance(one, family) == isinstance(other, family) for family in families) and fitting_shapes(one, other)


def _element(type_: Attribute) -> Attribute:
    return getattr(type_, "element_type", type_)


def strided(type_: MemRefType[Any]) -> tuple[list[Size], Size] | None:
    """Strides and offset of a memref; None where its layout has none."""
    strides = type_.get_strides()
    return None if strides is None else (list(strides), type_.get_offset())


def times(*factors: Size) -> Size:
    """A product, which is known where a factor is 0."""
    if 0 in factors:
        return 0
    known = [factor for factor in factors if factor is not None]
    return prod(known) if len(known) == len(factors) else None


def offset_of_slice(whole: MemRefType[Any], starts: Sequence[Size]) -> Size:
    """Where a slice begins in the memory of what it is cut from, in elements: what its type has to say as the offset.

    Args:
        whole: the type of what it is cut from.
        starts: its first index along each axis; None where only a run knows.
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
    """A number of a list that has a mark for what only a run knows."""
    return None if number == DYNAMIC_INDEX else number


def is_row_by_row(type_: MemRefType[Any]) -> bool:
    """Whether a layout is none, or one that MLIR takes for none: a single axis of stride 1 from the start."""
    return isinstance(type_.layout, NoneAttr) or type_.layout == StridedLayoutAttr([1], 0)


def with_layout(type_: MemRefType[Any], shape: Sequence[int], strides: Sequence[Size], offset: Size) -> MemRefType[Any]:
    """A memref like another, of a shape and a strided layout."""
    return MemRefType(type_.element_type, shape, StridedLayoutAttr(strides, offset), type_.memory_space)


def same_memref(one: MemRefType[Any], other: MemRefType[Any]) -> bool:
    """Whether two types are one; a layout that says what none says is none."""
    plain = [MemRefType(type_.element_type, type_.shape, NoneAttr(), type_.memory_space) if is_row_by_row(type_) else type_
             for type_ in (one, other)]
    return plain[0] == plain[1]


def dynamic_sizes(given: Sequence[Any], shape: Sequence[int]) -> None:
    """There is a value for each axis whose size the type leaves open."""
    expected = list(shape).count(DYNAMIC_INDEX)
    require(len(given) == expected, f"incorrect number of dynamic sizes, has {len(given)}, expected {expected}")


def slice_of(op: Any, whole: Sequence[int]) -> list[int]:
    """The sizes of a slice, whose offsets, sizes and strides fit what it is cut from.

    A slice that ends outside of its source is accepted, as LLVM 19 does; executing it reports the read past the end.

    Args:
        op: has ``static_offsets`` and the others, with values for what is not known.
        whole: the shape that it is cut from.
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


def drops_ones(sizes: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether a shape is the sizes of a slice, or those without some axes of size 1."""
    rest = list(shape)
    for size in sizes:
        if rest and rest[0] == size:
            rest.pop(0)
        elif size != 1:
            return False
    return not rest


def regrouped(collapsed: Sequence[int], expanded: Sequence[int], groups: Sequence[Sequence[int]]) -> None:
    """Every axis of one shape stands for a group of neighbouring axes of the other, of as many elements."""
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


def output_shape(op: Any, values: Sequence[Any], shape: Sequence[int], *, sizes: bool = True) -> None:
    """The sizes that an op states for its result, as numbers or values, may be those of the result's type.

    Args:
        op: has ``static_output_shape``.
        values: the sizes that are values.
        shape: of the result's type.
        sizes: whether the numbers are compared; LLVM 19 does so of memrefs, and not of tensors.
    """
    stated = list(op.static_output_shape.get_values())
    require(len(stated) == len(shape), f"expected number of static shape dims to be equal to the output rank ({len(shape)})"
                                       f" but found {len(stated)} inputs instead")
    markers = stated.count(DYNAMIC_INDEX)
    require(markers == len(values),
            f"mismatch in dynamic dims in output_shape and static_output_shape: static_output_shape has {markers} dynamic dims"
            f" while output_shape has {len(values)} values")
    for axis, (size, said) in enumerate(zip(shape, stated, strict=True) if sizes else ()):
        require(may_be_equal(size, said), f"invalid output shape provided at pos {axis}")


def groups_of(reassociation: Iterable[Any]) -> list[list[int]]:
    """The numbers of a list of groups of axes."""
    return [[place.value.data for place in group] for group in reassociation]
