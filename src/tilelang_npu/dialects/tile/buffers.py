"""Buffers of the tile dialect: memory scopes, allocations, and views (regions of a buffer, and other shapes)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    i64,
)
from xdsl.dialects.utils import DynamicIndexList, EnumAttribute, split_dynamic_index_list, verify_dynamic_index_list
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_attr_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.str_enum import StrEnum

from tilelang_npu.dialects.ir.declaration import fail
from tilelang_npu.dialects.ir.effects import Allocates, EffectsOp, op_with_effects
from tilelang_npu.dialects.ir.index_lists import mixed_values
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.mlir.rules import offset_of_slice
from tilelang_npu.dialects.text.names import escape_name
from tilelang_npu.target.chip_data import OpenScope

__all__ = [
    "SLICE", "AllocOp", "OpenMemory", "RegionOp", "ScopeAttr", "StridedTensorOp", "TensorOp", "ViewOp", "region_type",
    "root_of", "shape_of", "shape_text",
]

SLICE = "tile.slice"  # attribute of tile.region: the author wrote a slice as the destination, and not only its first element


class OpenMemory(StrEnum):
    """The kind of memory that the author asked for, for a buffer whose exact memory the compiler must choose.

    ``SHARED`` becomes L1 or UB, ``FRAGMENT`` L0C or UB, and ``LOCAL`` is scalar storage.
    """

    SHARED = "shared"
    FRAGMENT = "fragment"
    LOCAL = "local"

    @property
    def scope(self) -> OpenScope:
        """The scope as the author writes it."""
        return _SCOPES[self]


_SCOPES: dict[OpenMemory, OpenScope] = {
    OpenMemory.SHARED: "shared", OpenMemory.FRAGMENT: "fragment", OpenMemory.LOCAL: "local"}


@irdl_attr_definition
class ScopeAttr(EnumAttribute[OpenMemory]):
    """The memory space ``#tile.scope<shared>`` of a buffer whose memory the compiler must still choose; see ``OpenMemory``."""

    name = "tile.scope"

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data.value)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> OpenMemory:
        with parser.in_angle_brackets():
            return parser.parse_str_enum(OpenMemory)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Returns the shape of a memref value, with -1 for a dynamic dimension."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    return tuple(-1 if dim == DYNAMIC_INDEX else dim for dim in kind.get_shape())


def shape_text(shape: tuple[int, ...]) -> str:
    """Returns the text of a shape for messages, with ``?`` for a dynamic (negative) dimension: ``[?, 64]``."""
    return "[" + ", ".join("?" if dim < 0 else str(dim) for dim in shape) + "]"


@op_with_effects()
class AllocOp(EffectsOp):
    """Allocates an on-chip buffer of static shape.

    ``label`` is the buffer's name in the source. ``address`` is the byte address that the author chose, if any. ``slots`` is
    the number of slots of a multi-buffer, which successive iterations of the enclosing loop use cyclically.
    """

    name = "tile.alloc"
    label = prop_def(StringAttr)
    address = opt_prop_def(IntegerAttr)
    slots = opt_prop_def(IntegerAttr)
    result = result_def(MemRefType)
    traits = traits_def(Allocates())
    assembly_format = "$label (`at` $address^)? (`slots` $slots^)? attr-dict `:` type($result)"

    def __init__(self, label: str, result_type: MemRefType[Attribute], address: int | None = None):
        properties: dict[str, Attribute | None] = {"label": StringAttr(label)}
        if address is not None:
            properties["address"] = IntegerAttr(address, i64)
        super().__init__(properties=properties, result_types=[result_type])
        self.result.name_hint = escape_name(label)

    def verify_(self) -> None:
        shape = shape_of(self.result)
        if any(dim < 0 for dim in shape):
            fail(f"buffer {self.label.data!r} has shape {shape_text(shape)}; the sizes of an on-chip buffer must be constants, "
                 "and not negative")


def _tensor_type(source: SSAValue, sizes: Sequence[SSAValue | int], layout: StridedLayoutAttr | None = None
                 ) -> MemRefType[Attribute]:
    """Returns the type of a view of a kernel argument: its element type and memory, with -1 for sizes of run time."""
    kind = source.type
    assert isinstance(kind, MemRefType)
    shape = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
    return MemRefType(kind.element_type, shape, layout or NoneAttr(), kind.memory_space)


def _verify_one_dimension(source: SSAValue) -> None:
    """Fails if a kernel argument that is viewed as a tensor has not one dimension."""
    if len(shape_of(source)) != 1:
        fail("the argument must have one dimension")


@op_with_effects()
class TensorOp(EffectsOp):
    """Views a one-dimensional kernel argument as a tensor in row-major order; the sizes may be runtime values."""

    name = "tile.tensor"
    source = operand_def(MemRefType)
    sizes = var_operand_def(IndexType)
    static_sizes = prop_def(DenseArrayBase.constr(i64))
    result = result_def(MemRefType)
    traits = traits_def(Pure())
    assembly_format = (
        "$source custom<DynamicIndexList>($sizes, $static_sizes) attr-dict `:` type($source) `to` type($result)"
    )
    custom_directives = (DynamicIndexList,)

    def __init__(self, source: SSAValue, sizes: Sequence[SSAValue | int]):
        static, dynamic = split_dynamic_index_list(sizes, DYNAMIC_INDEX)
        super().__init__(
            operands=[source, dynamic],
            properties={"static_sizes": DenseArrayBase.from_list(i64, static)},
            result_types=[_tensor_type(source, sizes)],
        )

    def mixed_sizes(self) -> list[SSAValue | int]:
        """Returns the size of each axis: an int if the size is a constant, else an SSA value."""
        return mixed_values(self.static_sizes, self.sizes)

    def verify_(self) -> None:
        _verify_one_dimension(self.source)
        verify_dynamic_index_list(self.static_sizes.get_values(), self.sizes, DYNAMIC_INDEX, " in the sizes")


@op_with_effects()
class StridedTensorOp(EffectsOp):
    """Views a one-dimensional kernel argument as a tensor with gaps; sizes and strides, in elements, may be runtime values."""

    name = "tile.strided_tensor"
    source = operand_def(MemRefType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    static_sizes = prop_def(DenseArrayBase.constr(i64))
    static_strides = prop_def(DenseArrayBase.constr(i64))
    result = result_def(MemRefType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())
    assembly_format = (
        "$source custom<DynamicIndexList>($sizes, $static_sizes) `strides`"
        " custom<DynamicIndexList>($strides, $static_strides) attr-dict `:` type($source) `to` type($result)"
    )
    custom_directives = (DynamicIndexList,)

    def __init__(self, source: SSAValue, sizes: Sequence[SSAValue | int], strides: Sequence[SSAValue | int]):
        static_sizes, dynamic_sizes = split_dynamic_index_list(sizes, DYNAMIC_INDEX)
        static_strides, dynamic_strides = split_dynamic_index_list(strides, DYNAMIC_INDEX)
        layout = StridedLayoutAttr([stride if isinstance(stride, int) else None for stride in strides], 0)
        super().__init__(
            operands=[source, dynamic_sizes, dynamic_strides],
            properties={"static_sizes": DenseArrayBase.from_list(i64, static_sizes),
                        "static_strides": DenseArrayBase.from_list(i64, static_strides)},
            result_types=[_tensor_type(source, sizes, layout)],
        )

    def mixed_sizes(self) -> list[SSAValue | int]:
        """Returns the size of each axis: an int if the size is a constant, else an SSA value."""
        return mixed_values(self.static_sizes, self.sizes)

    def mixed_strides(self) -> list[SSAValue | int]:
        """Returns the stride of each axis: an int if the stride is a constant, else an SSA value."""
        return mixed_values(self.static_strides, self.strides)

    def verify_(self) -> None:
        _verify_one_dimension(self.source)
        sizes, strides = self.static_sizes.get_values(), self.static_strides.get_values()
        if len(sizes) != len(strides):
            fail(f"there are {len(sizes)} sizes and {len(strides)} strides; there must be one of each per axis")
        verify_dynamic_index_list(sizes, self.sizes, DYNAMIC_INDEX, " in the sizes")
        verify_dynamic_index_list(strides, self.strides, DYNAMIC_INDEX, " in the strides")


@op_with_effects()
class RegionOp(EffectsOp):
    """Views a rectangular region of a buffer, given by an offset and a size per axis; the result may omit axes of size 1.

    Unlike a ``memref.subview``, the region may extend beyond the bounds of a global tensor (see the docstring of the package).
    """

    name = "tile.region"
    source = operand_def(MemRefType)
    offsets = var_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    static_offsets = prop_def(DenseArrayBase.constr(i64))
    static_sizes = prop_def(DenseArrayBase.constr(i64))
    kept = prop_def(DenseArrayBase.constr(i64))
    result = result_def(MemRefType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())
    assembly_format = (
        "$source `` custom<DynamicIndexList>($offsets, $static_offsets)"
        " custom<DynamicIndexList>($sizes, $static_sizes)"
        " `keep` $kept attr-dict `:` type($source) `to` type($result)"
    )
    custom_directives = (DynamicIndexList,)

    def __init__(
        self,
        source: SSAValue,
        offsets: Sequence[SSAValue | int],
        sizes: Sequence[SSAValue | int],
        kept: Sequence[int] | None = None,
    ):
        """Builds the op.

        Args:
            source: the buffer.
            offsets: the first index of the region on each axis of the source.
            sizes: the size of the region on each axis of the source.
            kept: the source axes that the result keeps, by default all; the region must have size 1 on the others.
        """
        static_offsets, dynamic_offsets = split_dynamic_index_list(offsets, DYNAMIC_INDEX)
        static_sizes, dynamic_sizes = split_dynamic_index_list(sizes, DYNAMIC_INDEX)
        axes = tuple(range(len(offsets))) if kept is None else tuple(kept)
        super().__init__(
            operands=[source, dynamic_offsets, dynamic_sizes],
            properties={
                "static_offsets": DenseArrayBase.from_list(i64, static_offsets),
                "static_sizes": DenseArrayBase.from_list(i64, static_sizes),
                "kept": DenseArrayBase.from_list(i64, axes),
            },
            result_types=[region_type(source, offsets, sizes, axes)],
        )

    def mixed_offsets(self) -> list[SSAValue | int]:
        """Returns the offset on each axis of the source: an int if the offset is a constant, else an SSA value."""
        return mixed_values(self.static_offsets, self.offsets)

    def mixed_sizes(self) -> list[SSAValue | int]:
        """Returns the size on each axis of the source: an int if the size is a constant, else an SSA value."""
        return mixed_values(self.static_sizes, self.sizes)

    def verify_(self) -> None:
        rank = len(shape_of(self.source))
        offsets, sizes = self.static_offsets.get_values(), self.static_sizes.get_values()
        if not len(offsets) == len(sizes) == rank:
            fail(f"there are {len(offsets)} offsets and {len(sizes)} sizes for a buffer of rank {rank}; there must be one of "
                 "each per axis")
        verify_dynamic_index_list(offsets, self.offsets, DYNAMIC_INDEX, " in the offsets")
        verify_dynamic_index_list(sizes, self.sizes, DYNAMIC_INDEX, " in the sizes")
        kept = self.kept.get_values()
        for axis, size in enumerate(sizes):
            if axis not in kept and size != 1:
                extent = "a dynamic size" if size == DYNAMIC_INDEX else f"size {size}"
                fail(f"axis {axis} has {extent} and is not kept; only axes of size 1 can be dropped")
        if self.result.type != region_type(self.source, self.mixed_offsets(), self.mixed_sizes(), self.kept.get_values()):
            fail(f"result type {self.result.type} is not the type that the source, the offsets and the sizes imply")


def region_type(
    source: SSAValue, offsets: Sequence[SSAValue | int], sizes: Sequence[SSAValue | int], kept: Sequence[int]
) -> MemRefType[Attribute]:
    """Returns the memref type of a region of ``source``, which keeps the source axes in ``kept``."""
    kind = source.type
    assert isinstance(kind, MemRefType)
    strides = kind.get_strides() or [None] * len(sizes)
    offset = offset_of_slice(kind, [position if isinstance(position, int) else None for position in offsets])
    shape = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
    layout = StridedLayoutAttr([strides[axis] for axis in kept], offset)
    return MemRefType(kind.element_type, [shape[axis] for axis in kept], layout, kind.memory_space)


@op_with_effects()
class ViewOp(EffectsOp):
    """Views the elements of a buffer, in the same order, in another shape, without moving data.

    Source and result must be dense, or differ only in axes of size 1. If the result has another element type, it reinterprets
    the bits of the source. If the widths of the element types differ, source and result must each have one dense axis, and the
    same number of bytes.
    """

    name = "tile.view"
    source = operand_def(MemRefType)
    result = result_def(MemRefType)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, result_type: MemRefType[Attribute]):
        super().__init__(operands=[source], result_types=[result_type])

    def verify_(self) -> None:
        before, after = shape_of(self.source), shape_of(self.result)
        width, new_width = (_element_bytes(value) for value in (self.source, self.result))
        is_flat = len(before) == len(after) == 1 and min(*before, *after) > 0
        if width != new_width and not (is_flat and width * before[0] == new_width * after[0]):
            fail(f"the source {shape_text(before)} has elements of {width} bytes, the result {shape_text(after)} elements of "
                 f"{new_width} bytes; if the element sizes differ, both must have one axis, and the same number of bytes")


def _element_bytes(value: SSAValue) -> int:
    """The bytes of an element of a memref."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    return dtype_of(kind.element_type).nbytes


def root_of(value: SSAValue) -> SSAValue:
    """Returns the allocation or kernel argument that a chain of views (region, view and tensor ops) starts from."""
    while type(owner := value.owner) in _VIEWS:  # isinstance of an abstract class would take most of the time
        value = cast(Operation, owner).operands[0]
    return value


_VIEWS = frozenset({RegionOp, ViewOp, TensorOp, StridedTensorOp})
