"""Buffers of the lowered function, and views of them, which represent the buffer and slice operands of tile operations.

A view is symbolic: it stores an offset and a size for each axis of its buffer. A ``memref.subview`` is only emitted when an
operation needs a memref. Until then, copies can clip the view to its tensor, and slices of L1 and L0 can be mapped to fractals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from tilelang_npu import target as chips
from tilelang_npu.analysis.block_alignment import divisor
from tilelang_npu.analysis.buffers import root_of, space_of
from tilelang_npu.analysis.guards import is_surely_nonnegative
from tilelang_npu.analysis.locations import refuse
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.mlir.rules import offset_of_slice
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.ops import DType
from tilelang_npu.target import Chip, core_of, is_fractal
from tilelang_npu.target.chip_data import Space
from tilelang_npu.transforms.infra.op_builder import OpBuilder, Value

FRACTAL_BYTES = 32  # one row of a fractal (docs/hivm.md#fractals)
FRACTAL_ROWS = 16


@dataclass(frozen=True)
class LoweredBuffer:
    """An allocation or an argument of the lowered function.

    Attributes:
        value: the memref; for matrices in L1 and L0 it has two additional axes, because of the zN layout.
        space: the memory, by HIVM's name; ``local`` for scalar storage.
        shape: the logical shape.
        label: the author's name of the buffer.
        start: the offset of the first element from the memref's base pointer, in elements. ``memref.reinterpret_cast`` counts
            its offset from the base pointer.
        strides: the strides of a tensor with gaps, in elements; None where the elements follow one another.
        bytes: the allocation as a memref of bytes, if the buffer is also viewed with elements of another width; otherwise None.
        shift: the offset of the memref's base pointer from the start of ``bytes``, in bytes.
        scales: whether the buffer holds the scales of an MX matrix, which lie row by row in L1.
    """

    value: SSAValue
    space: Space | Literal["local"]
    shape: tuple[Value, ...]
    label: str
    start: Value = 0
    strides: tuple[Value, ...] | None = None
    bytes: SSAValue | None = None
    shift: Value = 0
    scales: bool = False

    @property
    def element(self) -> Attribute:
        kind = self.value.type
        assert isinstance(kind, MemRefType)
        element: Attribute = kind.element_type
        return element

    @property
    def memory(self) -> Space:
        """The memory of a buffer that is no scalar storage."""
        assert self.space != "local"
        return self.space

    @property
    def dtype(self) -> DType:
        return dtype_of(self.element)

    @property
    def fractal(self) -> bool:
        """Whether the memref has the zN layout."""
        return is_fractal(self.space) and not self.scales


@dataclass(frozen=True)
class View:
    """A rectangular region of a buffer, possibly with dropped, permuted or added axes.

    Attributes:
        buffer: the buffer.
        offsets: the first element of the region along each axis of the buffer.
        sizes: the number of elements of the region along each axis of the buffer.
        axes: for each axis of the view, the axis of the buffer, or None for an additional axis of size 1.
    """

    buffer: LoweredBuffer
    offsets: tuple[Value, ...]
    sizes: tuple[Value, ...]
    axes: tuple[int | None, ...]

    @property
    def shape(self) -> tuple[Value, ...]:
        return tuple(1 if axis is None else self.sizes[axis] for axis in self.axes)

    @property
    def whole(self) -> bool:
        """Whether the view is the whole buffer with all its axes in order."""
        return self.axes == tuple(range(len(self.sizes))) and self.covers

    @property
    def covers(self) -> bool:
        """Whether the view contains every element of the buffer, in whatever order of the axes."""
        return all(o == 0 for o in self.offsets) and self.sizes == self.buffer.shape

    def resized(self, shape: tuple[Value, ...]) -> View:
        """Returns a view with the same offsets and another shape, which must have one size per axis of the view."""
        sizes = list(self.sizes)
        for axis, size in zip(self.axes, shape, strict=True):
            if axis is not None:
                sizes[axis] = size
        return replace(self, sizes=tuple(sizes))


def whole_view(buffer: LoweredBuffer) -> View:
    """Returns the view that contains the whole buffer."""
    rank = len(buffer.shape)
    return View(buffer, (0,) * rank, buffer.shape, tuple(range(rank)))


def fractal_shape(rows: int, columns: int, element: DType, *, accumulator: bool) -> tuple[int, int, int, int]:
    """Returns the shape of a matrix in zN layout: [columns/c0, rows/16, 16, c0], rounded up.

    ``c0`` is 16 elements for an accumulator in L0C, and otherwise the number of elements in 32 bytes.
    """
    c0 = 16 if accumulator else FRACTAL_BYTES // element.nbytes
    return -(-columns // c0), -(-rows // FRACTAL_ROWS), FRACTAL_ROWS, c0


def require_movable(chip: Chip, op: Operation, *views: View) -> None:
    """Raises an error if a view has an element type that the chip can neither move nor fill.

    These types are float64, and float8 on most chips.

    Raises:
        TileError: T110, a view has such an element type.
    """
    for view in views:
        kind = view.buffer.dtype
        if kind.mlir in chip.features.element_types:
            continue
        if kind == "float64":
            raise refuse(op, f"{view.buffer.label} has elements of {kind}, which cannot be copied or filled", "T110",
                         help="use float32 instead")
        others = [one.name for one in chips.chips() if kind.mlir in one.features.element_types]
        where = f"compile for {' or '.join(others)}, or " if others else ""
        raise refuse(op, f"{view.buffer.label} has elements of {kind}, which {chip.name} does not support", "T110",
                     help=f"{where}use float16")


def surely_inside(emit: OpBuilder, offset: Value, size: Value, bound: Value) -> bool:
    """Whether ``offset + size <= bound`` can be proved for a slice of an axis with ``bound`` elements."""
    if offset == 0 and size is bound:
        return True
    ranges = emit.ranges
    if ranges.of(offset).high + ranges.of(size).high <= ranges.of(bound).low:
        return True
    end = affine(offset, ranges.constant) + affine(size, ranges.constant)
    return is_surely_nonnegative(affine(bound, ranges.constant) - end, emit.conditions, ranges)


def broadcast_axes(inputs: list[View], target: View) -> list[int]:
    """Returns the axes along which an input has size 1 and the target has another size."""
    return [axis for axis, size in enumerate(target.shape)
            if size != 1 and any(view.shape[axis] == 1 for view in inputs)]


def materialise(emit: OpBuilder, view: View, op: Operation, *, pads: bool = False) -> SSAValue:
    """Emits the subview or cast for a view if necessary, and returns the memref.

    Args:
        emit: inserts the operations.
        view: the view.
        op: the operation that needs the memref, for errors.
        pads: whether the operation fills the memref before it loads into it. Then the memref must contain exactly the elements
            of the view, and no padding of fractals.

    Raises:
        TileError: T221, a slice of L1 or L0 does not consist of whole fractals.
    """
    if view.buffer.fractal:
        return _fractal_view(emit, view, op, pads=pads)
    if view.whole:
        return view.buffer.value
    kept = [axis for axis in view.axes if axis is not None]
    if None in view.axes or kept != sorted(kept):
        return _reinterpreted(emit, view)
    return _subview(emit, view, kept)


def _subview(emit: OpBuilder, view: View, kept: list[int]) -> SSAValue:
    source = view.buffer.value
    assert isinstance(source.type, MemRefType)
    strides = list(source.type.get_strides() or [None] * len(view.sizes))
    offsets = [0 if size == 0 else offset for offset, size in zip(view.offsets, view.sizes, strict=True)]  # nothing is anywhere
    shape = [size if isinstance(size, int) else DYNAMIC_INDEX for size in view.sizes]
    starts = [offset if isinstance(offset, int) else None for offset in offsets]
    layout = StridedLayoutAttr([strides[axis] for axis in kept], offset_of_slice(source.type, starts))
    kind = MemRefType(source.type.element_type, [shape[axis] for axis in kept], layout, source.type.memory_space)
    made = memref.SubviewOp.get(source, offsets, list(view.sizes), [1] * len(view.sizes), kind)
    return emit.insert(made).result


def _reinterpreted(emit: OpBuilder, view: View) -> SSAValue:
    """Returns the memref of a view with additional unit axes: the same storage under explicit offset, sizes and strides."""
    source = bounds_checked(emit, view)
    assert isinstance(source.type, MemRefType)
    strides, offset = row_strides(emit, view.buffer), first_element(emit, view)
    sizes, steps = list(view.shape), [1 if axis is None else strides[axis] for axis in view.axes]
    layout = StridedLayoutAttr([step if isinstance(step, int) else None for step in steps],
                               offset if isinstance(offset, int) else None)
    shape = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
    kind = MemRefType(source.type.element_type, shape, layout, source.type.memory_space)
    made = memref.ReinterpretCastOp.from_dynamic(source, [offset], sizes, steps, kind)
    result: SSAValue = emit.insert(made).result
    return result


def bounds_checked(emit: OpBuilder, view: View) -> SSAValue:
    """Returns the memref to which a ``memref.reinterpret_cast`` for the view is applied.

    This is the buffer's memref. If the view possibly exceeds an axis of an on-chip buffer, a subview is emitted and returned
    instead, because a subview's bounds are checked when the program runs.
    """
    buffer = view.buffer
    sides = zip(view.offsets, view.sizes, buffer.shape, strict=True)
    if buffer.space == "gm" or all(_is_nonnegative(emit, start) and surely_inside(emit, start, size, extent)
                                   for start, size, extent in sides):
        return buffer.value
    return _subview(emit, view, list(range(len(view.sizes))))


def first_element(emit: OpBuilder, view: View) -> Value:
    """Returns the offset of the view's first element from the base pointer of the buffer's memref, in elements."""
    offset = view.buffer.start
    for position, stride in zip(view.offsets, row_strides(emit, view.buffer), strict=True):
        offset = emit.add(offset, emit.mul(position, stride))
    return offset


def row_strides(emit: OpBuilder, buffer: LoweredBuffer) -> list[Value]:
    """Returns the strides of a buffer, in elements.

    A stride that is not constant is the product of the sizes of the inner axes, unless the tensor has gaps.
    """
    if buffer.strides is not None:
        return list(buffer.strides)
    assert isinstance(buffer.value.type, MemRefType)
    found: list[Value] = []
    dense: Value = 1
    for size, stride in zip(reversed(buffer.shape), reversed(buffer.value.type.get_strides() or []), strict=True):
        found.insert(0, dense if stride is None else stride)
        dense = emit.mul(dense, size)
    return found


def reshaped(emit: OpBuilder, view: View, shape: tuple[int, ...]) -> View | None:
    """Returns a view of the same elements with another shape.

    Returns None if the elements are not contiguous, or if the number of elements differs.
    """
    buffer = view.buffer
    source, sizes, have = buffer.value, view.sizes, buffer.shape
    assert isinstance(source.type, MemRefType)
    kept = [axis for axis in view.axes if axis is not None]
    constant = [size for size in sizes if isinstance(size, int)]
    rows = [size for size in have if isinstance(size, int)]
    gaps = [axis for axis in range(len(sizes)) if sizes[axis] != have[axis] and any(size != 1 for size in sizes[:axis])]
    if buffer.fractal:
        return None
    strides = row_strides(emit, buffer)
    padded = [axis for axis, stride in enumerate(strides) if have[axis] != 1 and stride != math.prod(rows[axis + 1:])]
    if (kept != sorted(kept) or len(constant) != len(sizes) or gaps or padded
            or DYNAMIC_INDEX in shape or math.prod(constant) != math.prod(shape)):
        return None
    offset = first_element(emit, view)
    steps = [math.prod(shape[axis + 1:]) for axis in range(len(shape))]
    kind = MemRefType(source.type.element_type, shape, StridedLayoutAttr(steps, offset if isinstance(offset, int) else None),
                      source.type.memory_space)
    made = memref.ReinterpretCastOp.from_dynamic(bounds_checked(emit, view), [offset], list(shape), steps, kind)
    return whole_view(replace(buffer, value=emit.insert(made).result, shape=shape, start=offset, strides=None))


class _FractalAccess(Enum):
    """Which elements of the fractals of a view an operation accesses."""

    READS = "all, but uses only those of the slice"
    LOADS = "those of the slice: it writes parts of the 32 bytes of a fractal's row"
    BLOCKS = "whole rows of fractals"
    FRACTALS = "whole fractals"


def _fractal_access_of(view: View, op: Operation) -> _FractalAccess:
    if isinstance(op, tile.FillOp):
        return _FractalAccess.BLOCKS
    writes = isinstance(op, tile.CopyOp) and view.buffer.space == "cbuf" and space_of(op.target) == "cbuf"
    if not writes or root_of(op.operands[0]) is root_of(op.operands[1]):
        return _FractalAccess.READS
    return {"gm": _FractalAccess.LOADS, "cc": _FractalAccess.FRACTALS}.get(space_of(op.operands[0]), _FractalAccess.BLOCKS)


def _fractal_view(emit: OpBuilder, view: View, op: Operation, *, pads: bool) -> SSAValue:
    """Returns the memref of a view of a matrix in L1 or L0: a rectangle of whole fractals of one of the buffer's matrices.

    A write may start at any row, since the rows of a panel of columns lie one after another. A view that may leave its matrix
    is cut from it axis by axis, so that its bounds are in the program.
    """
    buffer = view.buffer
    rank = len(buffer.shape)
    if view.covers and rank <= 2:
        return buffer.value
    source = buffer.value.type
    assert isinstance(source, MemRefType)
    *lead, _, _, r0, c0 = source.get_shape()
    (row, column), (rows, columns) = view.offsets[-2:], view.sizes[-2:]
    have_rows, have_columns = (size for size in buffer.shape[-2:])
    assert isinstance(have_rows, int) and isinstance(have_columns, int)
    if any(size != 1 for size in view.sizes[:-2]):
        raise refuse(op, f"a slice of {buffer.label} contains several matrices", "T221",
                     help="slice a single matrix: buffer[i, :, :]")
    access = _fractal_access_of(view, op)
    if not _is_exact(op) and (access is _FractalAccess.READS or (access is _FractalAccess.LOADS and not pads)):
        rows, columns = _size_or_rest(rows, row, have_rows), _size_or_rest(columns, column, have_columns)
        _require_known_size(op, view, (row, rows), (column, columns), access)
    whole_blocks = access in (_FractalAccess.BLOCKS, _FractalAccess.FRACTALS)
    columns_fit = _is_on_fractals(emit, column, columns, c0, have_columns, exact=whole_blocks)
    rows_fit = _is_on_fractals(emit, row, rows, r0, have_rows, exact=whole_blocks) and (
        isinstance(rows, int) or access is _FractalAccess.READS)
    if not columns_fit or not (rows_fit or access in (_FractalAccess.LOADS, _FractalAccess.BLOCKS)):
        raise refuse(op, f"a slice of {buffer.label} does not consist of whole fractals of {r0} x {c0}", "T221",
                     notes=(f"the slice has {_in_words(rows)} rows from row {_in_words(row)} on, {_in_words(columns)} columns "
                            f"from column {_in_words(column)} on",),
                     help=f"use offsets and sizes that are multiples of {r0} rows and {c0} columns")
    panels = _block_count(emit, columns, c0)
    sizes: list[Value] = [panels, _block_count(emit, rows, r0), r0, c0] if rows_fit else [panels, 1, rows, c0]
    first: list[Value] = [emit.floordiv(column, c0), emit.floordiv(row, r0) if rows_fit else row, 0, 0]
    sides = [*((position, 1, count) for position, count in zip(view.offsets, lead, strict=False)),
             (row, rows, have_rows), (column, columns, have_columns)]
    inside = all(_is_nonnegative(emit, start) and surely_inside(emit, start, size, extent) for start, size, extent in sides)
    all_of_it = (row, rows) == (0, have_rows) and (column, columns) == (0, have_columns)
    from_vector = access is _FractalAccess.BLOCKS and isinstance(op, tile.CopyOp) and core_of(space_of(op.source)) == "AIV"
    if not lead and rows_fit and (not inside or (isinstance(row, int) and isinstance(column, int))):
        return _fractal_subview(emit, buffer.value, first, sizes)
    if lead and rows_fit and (not inside or from_vector):
        # the matrix first: flags between the cores are by the slots of a ring
        matrix = _matrix_view(emit, view)
        return matrix if all_of_it and not from_vector else _fractal_subview(emit, matrix, first, sizes)
    if not inside:
        return _row_subview(emit, _matrix_view(emit, view) if lead else buffer.value, first, sizes)
    strides = [stride or 0 for stride in source.get_strides() or []]
    offset: Value = emit.mul(first[0], strides[-4])
    offset = emit.add(offset, emit.mul(row, strides[-2]))
    for position, stride in zip(view.offsets[:-2], strides, strict=False):
        offset = emit.add(offset, emit.mul(position, stride))
    layout = StridedLayoutAttr(strides[-4:], offset if isinstance(offset, int) else None)
    kind = MemRefType(source.element_type, _shape_of(sizes), layout, source.memory_space)
    cast = memref.ReinterpretCastOp.from_dynamic(buffer.value, [offset], sizes, strides[-4:], kind)
    result: SSAValue = emit.insert(cast).result
    return result


def _is_exact(op: Operation) -> bool:
    """Whether an operation's memrefs of matrices in L0 have the size of the slice also where only run time knows the size.

    The layout of L0A and L0B and the blocks that unit flags pass on depend on it.
    """
    if isinstance(op, tile.GemmOp):
        return space_of(op.a) == "ca"
    if isinstance(op, tile.CopyOp):
        return op.unit_flag is not None or space_of(op.target) in ("ca", "cb")
    return isinstance(op, tile.PatchLoadOp)


def _require_known_size(op: Operation, view: View, rows: tuple[Value, Value], columns: tuple[Value, Value],
                        access: _FractalAccess) -> None:
    """Refuse an author's load into L0 of which only run time knows both the start and the size.

    A copy to GM has the size of its other side, and a product states how much of its operands it multiplies.
    """
    sized = isinstance(op, tile.CopyOp) and (access is _FractalAccess.LOADS or space_of(op.target) == "gm")
    sized = sized or (isinstance(op, tile.GemmOp) and space_of(op.a) == "cbuf")
    if not sized and not all(isinstance(size, int) for _, size in (rows, columns)):
        raise refuse(op, f"a slice of {view.buffer.label} has a start and a size that are both known only at run time", "T221",
                     help="start the slice at a constant, or give it a constant size")


def _is_nonnegative(emit: OpBuilder, value: Value) -> bool:
    """Whether an offset is surely not negative."""
    ranges = emit.ranges
    return ranges.of(value).low >= 0 or is_surely_nonnegative(affine(value, ranges.constant), emit.conditions, ranges)


def _fractal_subview(emit: OpBuilder, matrix: SSAValue, first: Sequence[Value], sizes: Sequence[Value]) -> SSAValue:
    """Returns a part of the fractals of a matrix."""
    kind = matrix.type
    assert isinstance(kind, MemRefType)
    starts = [position if isinstance(position, int) else None for position in first]
    layout = StridedLayoutAttr(kind.get_strides() or [], offset_of_slice(kind, starts))
    made = MemRefType(kind.element_type, _shape_of(sizes), layout, kind.memory_space)
    return emit.insert(memref.SubviewOp.get(matrix, list(first), list(sizes), [1] * len(sizes), made)).result


def _row_subview(emit: OpBuilder, matrix: SSAValue, first: Sequence[Value], sizes: Sequence[Value]) -> SSAValue:
    """Returns rows of a matrix from any row on, as one row of fractals as high as the number of rows."""
    kind = matrix.type
    assert isinstance(kind, MemRefType)
    n1, m1, r0, c0 = kind.get_shape()
    panel, _, row, column = kind.get_strides() or []
    groups = ArrayAttr([ArrayAttr([IntegerAttr(axis, i64) for axis in axes]) for axes in ((0,), (1, 2), (3,))])
    start = kind.layout.get_offset() if isinstance(kind.layout, StridedLayoutAttr) else None
    layout = StridedLayoutAttr([panel, row, column], start) if isinstance(kind.layout, StridedLayoutAttr) else NoneAttr()
    whole_rows = memref.CollapseShapeOp(operands=[matrix], properties={"reassociation": groups}, result_types=[
        MemRefType(kind.element_type, [n1, m1 * r0, c0], layout, kind.memory_space)])
    panels, _, rows, _ = sizes
    part = _fractal_subview(emit, emit.insert(whole_rows).result, first[:3], [panels, rows, c0])
    assert isinstance(part.type, MemRefType) and isinstance(part.type.layout, StridedLayoutAttr) and row is not None
    shape = _shape_of(sizes)
    strides = [panel, rows * row if isinstance(rows, int) else None, row, column]
    split = MemRefType(kind.element_type, shape, StridedLayoutAttr(strides, part.type.layout.get_offset()), kind.memory_space)
    dynamic = [size for size in sizes if isinstance(size, SSAValue)]
    made = memref.ExpandShapeOp(operands=[part, dynamic], result_types=[split], properties={
        "reassociation": groups, "static_output_shape": DenseArrayBase.from_list(i64, shape)})
    return emit.insert(made).result


def _shape_of(sizes: Sequence[Value]) -> list[int]:
    return [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]


def _matrix_view(emit: OpBuilder, view: View) -> SSAValue:
    """Returns the one of a buffer's matrices that a view is in."""
    source = view.buffer.value
    assert isinstance(source.type, MemRefType)
    lead = len(view.buffer.shape) - 2
    shape, strides = source.type.get_shape(), source.type.get_strides() or []
    starts = [position if isinstance(position, int) else None for position in view.offsets[:lead]]
    layout = StridedLayoutAttr(strides[lead:], offset_of_slice(source.type, [*starts, 0, 0, 0, 0]))
    kind = MemRefType(source.type.element_type, shape[lead:], layout, source.type.memory_space)
    offsets, sizes = [*view.offsets[:lead], 0, 0, 0, 0], [*([1] * lead), *shape[lead:]]
    return emit.insert(memref.SubviewOp.get(source, offsets, sizes, [1] * len(shape), kind)).result


def _size_or_rest(size: Value, offset: Value, extent: int) -> Value:
    """Returns a size or, if only run time knows it and the offset is constant, the rest of the axis."""
    return extent - offset if not isinstance(size, int) and isinstance(offset, int) else size


def _block_count(emit: OpBuilder, size: Value, unit: int) -> Value:
    """Returns the number of blocks of ``unit`` elements that a size takes."""
    return -(-size // unit) if isinstance(size, int) else emit.floordiv(emit.add(size, unit - 1), unit)


def _is_on_fractals(emit: OpBuilder, offset: Value, size: Value, unit: int, extent: int, *, exact: bool) -> bool:
    """Whether a part of an axis certainly starts on the boundary of a fractal, and ends on one or at the end of the axis.

    Without ``exact``, the part may also end inside of a fractal, if it starts at index 0 or has a size that only run time
    knows. This is safe because nothing writes to the rest of that fractal.
    """
    if not _is_multiple(emit, offset, unit):
        return False
    if isinstance(size, int):
        return size % unit == 0 or _ends_with_axis(offset, size, extent) or (offset == 0 and not exact)
    return not exact or _is_multiple(emit, size, unit)


def _ends_with_axis(offset: Value, size: int, extent: int) -> bool:
    return isinstance(offset, int) and offset + size == extent


def _in_words(value: Value) -> str:
    return str(value) if isinstance(value, int) else author_name(value, "(known when it runs)")


def _is_multiple(emit: OpBuilder, value: Value, unit: int) -> bool:
    """Whether a number is surely a multiple of ``unit``."""
    known = value if isinstance(value, int) else emit.ranges.constant(value)
    return (divisor(value) if known is None else known) % unit == 0
