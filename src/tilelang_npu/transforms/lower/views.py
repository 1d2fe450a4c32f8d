"""Lowered buffers and the views of them that tile operands are.

A view stays symbolic (offsets and sizes per axis of its buffer) until an operation needs a memref; only then a
subview is emitted, so that the copies can still clip it against the tensor and the Cube side can turn it into
fractals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

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

from tilelang_npu.dialects import hacc, tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.mlir.rules import offset_of_slice
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.ops import DType
from tilelang_npu.target import core_of, is_fractal
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.emit import OpBuilder, Value
from tilelang_npu.transforms.ir.guards import surely_natural
from tilelang_npu.transforms.ir.locations import refuse
from tilelang_npu.transforms.ir.whole_blocks import divisor

FRACTAL_BYTES = 32  # one row of a fractal (docs/hivm.md#fractals)
FRACTAL_ROWS = 16


@dataclass(frozen=True)
class LoweredBuffer:
    """A lowered allocation or kernel argument.

    Attributes:
        value: the memref; matrices in L1 and L0 have two axes more here (zN fractals).
        space: the memory, as HIVM spells it.
        shape: the logical shape.
        label: the user's name.
        start: elements from the memref's base pointer, from which ``memref.reinterpret_cast`` counts, to its first element.
        bytes: the allocation as bytes, of a buffer that is seen as elements of another width too.
        shift: bytes from there to the memref's base pointer.
    """

    value: SSAValue
    space: str
    shape: tuple[Value, ...]
    label: str
    start: Value = 0
    bytes: SSAValue | None = None
    shift: Value = 0

    @property
    def element(self) -> Attribute:
        kind = self.value.type
        assert isinstance(kind, MemRefType)
        element: Attribute = kind.element_type
        return element

    @property
    def dtype(self) -> DType:
        return dtype_of(self.element)

    @property
    def fractal(self) -> bool:
        """Whether the memref has the zN layout."""
        return is_fractal(self.space)


@dataclass(frozen=True)
class View:
    """A rectangle of a buffer; ``axes`` gives, per axis of the view, the buffer's axis or None for a unit axis of its
    own.
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
        """Whether the view has the buffer's own shape and extent."""
        return self.axes == tuple(range(len(self.sizes))) and self.covers

    @property
    def covers(self) -> bool:
        """Whether every element of the buffer is in the view."""
        return all(o == 0 for o in self.offsets) and self.sizes == self.buffer.shape

    def resized(self, shape: tuple[Value, ...]) -> View:
        """The view from the same origin with another shape."""
        sizes = list(self.sizes)
        for axis, size in zip(self.axes, shape, strict=True):
            if axis is not None:
                sizes[axis] = size
        return replace(self, sizes=tuple(sizes))


def whole(buffer: LoweredBuffer) -> View:
    """All of a buffer."""
    rank = len(buffer.shape)
    return View(buffer, (0,) * rank, buffer.shape, tuple(range(rank)))


def fractal_shape(rows: int, columns: int, element: DType, *, accumulator: bool) -> tuple[int, int, int, int]:
    """The zN shape of a matrix: [columns/c0, rows/16, 16, c0], c0 = 32 bytes of A and B, 16 elements of C."""
    c0 = 16 if accumulator else FRACTAL_BYTES // element.nbytes
    return -(-columns // c0), -(-rows // FRACTAL_ROWS), FRACTAL_ROWS, c0


def require_movable(op: Operation, *views: View) -> None:
    """Raise T110 for an element type that the chip neither moves nor fills: float64 and int4, and float8 before the 950."""
    for view in views:
        kind, target = view.buffer.dtype, hacc.target_of(op) or ""
        if kind in ("float64", "int4"):
            raise refuse(op, f"{view.buffer.label} has elements of {kind}, which cannot be copied or filled", "T110",
                         help="use float32 instead" if kind.is_float else "keep two of them in an int8")
        if kind.is_float and kind.bits == 8 and not hacc.is_register_based(target):
            raise refuse(op, f"{view.buffer.label} has elements of {kind}, which {target} does not know", "T110",
                         help="float8 is a type of the 950: compile for it, or use float16")


def surely_inside(emit: OpBuilder, offset: Value, size: Value, bound: Value) -> bool:
    """Whether a part of an axis surely ends within the axis."""
    if offset == 0 and size is bound:
        return True
    ranges = emit.ranges
    if ranges.of(offset).high + ranges.of(size).high <= ranges.of(bound).low:
        return True
    end = affine(offset, ranges.constant) + affine(size, ranges.constant)
    return surely_natural(affine(bound, ranges.constant) - end, emit.conditions, ranges)


def broadcast_axes(inputs: list[View], target: View) -> list[int]:
    """Axes along which an input of size 1 is repeated."""
    return [axis for axis, size in enumerate(target.shape)
            if size != 1 and any(view.shape[axis] == 1 for view in inputs)]


def materialise(emit: OpBuilder, view: View, op: Operation, *, pads: bool = False) -> SSAValue:
    """The memref of a view.

    Args:
        emit: where it is emitted.
        view: the view.
        op: the operation that it is for, which is named where the view cannot be had.
        pads: whether the operation fills the view before it loads: it then has no element more than the slice.
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
    """A view with unit axes of its own: the same storage under explicit offset, sizes and strides."""
    source = checked(emit, view)
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


def checked(emit: OpBuilder, view: View) -> SSAValue:
    """The memref that a view under explicit strides is made of: the buffer's, or where the view may leave an axis of a buffer
    on chip, the part cut from it, so that the bounds are in the program."""
    buffer = view.buffer
    sides = zip(view.offsets, view.sizes, buffer.shape, strict=True)
    if buffer.space == "gm" or all(_is_natural(emit, start) and surely_inside(emit, start, size, extent)
                                   for start, size, extent in sides):
        return buffer.value
    return _subview(emit, view, list(range(len(view.sizes))))


def first_element(emit: OpBuilder, view: View) -> Value:
    """Elements from the base pointer of a view's memref to the view's first element."""
    offset = view.buffer.start
    for position, stride in zip(view.offsets, row_strides(emit, view.buffer), strict=True):
        offset = emit.add(offset, emit.mul(position, stride))
    return offset


def row_strides(emit: OpBuilder, buffer: LoweredBuffer) -> list[Value]:
    """Strides in elements. Those that the type leaves open are products of extents: tensors in GM have no gaps."""
    assert isinstance(buffer.value.type, MemRefType)
    found: list[Value] = []
    dense: Value = 1
    for size, stride in zip(reversed(buffer.shape), reversed(buffer.value.type.get_strides() or []), strict=True):
        found.insert(0, dense if stride is None else stride)
        dense = emit.mul(dense, size)
    return found


def reshaped(emit: OpBuilder, view: View, shape: tuple[int, ...]) -> View | None:
    """The same elements under another shape; None where they do not follow one another in memory, or are not as many."""
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
    made = memref.ReinterpretCastOp.from_dynamic(checked(emit, view), [offset], list(shape), steps, kind)
    return whole(replace(buffer, value=emit.insert(made).result, shape=shape, start=offset))


class _Touch(Enum):
    """Which elements of the fractals in its view an operation touches."""

    READS = "all, but uses only those of the slice"
    LOADS = "those of the slice: it writes parts of the 32 bytes of a fractal's row"
    BLOCKS = "whole rows of fractals"
    FRACTALS = "whole fractals"


def _touch_of(view: View, op: Operation) -> _Touch:
    if isinstance(op, tile.FillOp):
        return _Touch.BLOCKS
    writes = isinstance(op, tile.CopyOp) and view.buffer.space == "cbuf" and space_of(op.target) == "cbuf"
    if not writes or root_of(op.operands[0]) is root_of(op.operands[1]):
        return _Touch.READS
    return {"gm": _Touch.LOADS, "cc": _Touch.FRACTALS}.get(space_of(op.operands[0]), _Touch.BLOCKS)


def _fractal_view(emit: OpBuilder, view: View, op: Operation, *, pads: bool) -> SSAValue:
    """A view of a matrix in L1 or L0: a rectangle of whole fractals of one of the matrices that the buffer holds.

    What is written may start at any row, because the rows of a panel of columns lie one after another. A view that may reach
    beyond its matrix is cut from it axis by axis, so that its bounds are in the program.
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
        raise refuse(op, f"a slice of {buffer.label} has several matrices", "T221", help="take one of them: buffer[i, :, :]")
    touch = _touch_of(view, op)
    if touch is _Touch.READS or (touch is _Touch.LOADS and not pads):
        rows, columns = _room(rows, row, have_rows), _room(columns, column, have_columns)
        _require_size(op, view, (row, rows), (column, columns), touch)
    whole_blocks = touch in (_Touch.BLOCKS, _Touch.FRACTALS)
    columns_fit = _on_fractals(emit, column, columns, c0, have_columns, exact=whole_blocks)
    rows_fit = _on_fractals(emit, row, rows, r0, have_rows, exact=whole_blocks) and (
        isinstance(rows, int) or touch is _Touch.READS)
    if not columns_fit or not (rows_fit or touch in (_Touch.LOADS, _Touch.BLOCKS)):
        raise refuse(op, f"a slice of {buffer.label} does not fall on whole fractals of {r0} x {c0}", "T221",
                     notes=(f"the slice has {_shown(rows)} rows from row {_shown(row)} on, {_shown(columns)} columns from "
                            f"column {_shown(column)} on",),
                     help=f"use offsets and sizes that are multiples of {r0} rows and {c0} columns")
    panels = _blocks(emit, columns, c0)
    sizes: list[Value] = [panels, _blocks(emit, rows, r0), r0, c0] if rows_fit else [panels, 1, rows, c0]
    first: list[Value] = [emit.floordiv(column, c0), emit.floordiv(row, r0) if rows_fit else row, 0, 0]
    sides = [*((position, 1, count) for position, count in zip(view.offsets, lead, strict=False)),
             (row, rows, have_rows), (column, columns, have_columns)]
    inside = all(_is_natural(emit, start) and surely_inside(emit, start, size, extent) for start, size, extent in sides)
    all_of_it = (row, rows) == (0, have_rows) and (column, columns) == (0, have_columns)
    from_vector = touch is _Touch.BLOCKS and isinstance(op, tile.CopyOp) and core_of(space_of(op.source)) == "AIV"
    if not lead and rows_fit and (not inside or (isinstance(row, int) and isinstance(column, int))):
        return _cut(emit, buffer.value, first, sizes)
    if lead and rows_fit and (not inside or from_vector):
        # the matrix first: flags between the cores are by the slots of a ring
        matrix = _matrix(emit, view)
        return matrix if all_of_it and not from_vector else _cut(emit, matrix, first, sizes)
    if not inside:
        return _rows_cut(emit, _matrix(emit, view) if lead else buffer.value, first, sizes)
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


def _require_size(op: Operation, view: View, rows: tuple[Value, Value], columns: tuple[Value, Value], touch: _Touch) -> None:
    """Refuse what the author loads into L0 where only run time knows both where it starts and how large it is.

    What is copied to GM has the size of the other side, and a product says how much of its operands it multiplies.
    """
    sized = isinstance(op, tile.CopyOp) and (touch is _Touch.LOADS or space_of(op.target) == "gm")
    sized = sized or (isinstance(op, tile.GemmOp) and space_of(op.a) == "cbuf")
    if not sized and not all(isinstance(size, int) for _, size in (rows, columns)):
        raise refuse(op, f"a slice of {view.buffer.label} has a start and a size known only at run time", "T221",
                     help="let it start at a constant, or give it a constant size")


def _is_natural(emit: OpBuilder, value: Value) -> bool:
    """Whether an offset is surely not negative."""
    return emit.ranges.of(value).low >= 0 or surely_natural(affine(value, emit.ranges.constant), emit.conditions, emit.ranges)


def _cut(emit: OpBuilder, matrix: SSAValue, first: Sequence[Value], sizes: Sequence[Value]) -> SSAValue:
    """A part of the fractals of a matrix."""
    kind = matrix.type
    assert isinstance(kind, MemRefType)
    starts = [position if isinstance(position, int) else None for position in first]
    layout = StridedLayoutAttr(kind.get_strides() or [], offset_of_slice(kind, starts))
    made = MemRefType(kind.element_type, _shape_of(sizes), layout, kind.memory_space)
    return emit.insert(memref.SubviewOp.get(matrix, list(first), list(sizes), [1] * len(sizes), made)).result


def _rows_cut(emit: OpBuilder, matrix: SSAValue, first: Sequence[Value], sizes: Sequence[Value]) -> SSAValue:
    """Rows of a matrix from any row on, as one row of fractals that are so many rows high."""
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
    part = _cut(emit, emit.insert(whole_rows).result, first[:3], [panels, rows, c0])
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


def _matrix(emit: OpBuilder, view: View) -> SSAValue:
    """The one of a buffer's matrices that a view is of, whole."""
    source = view.buffer.value
    assert isinstance(source.type, MemRefType)
    lead = len(view.buffer.shape) - 2
    shape, strides = source.type.get_shape(), source.type.get_strides() or []
    starts = [position if isinstance(position, int) else None for position in view.offsets[:lead]]
    layout = StridedLayoutAttr(strides[lead:], offset_of_slice(source.type, [*starts, 0, 0, 0, 0]))
    kind = MemRefType(source.type.element_type, shape[lead:], layout, source.type.memory_space)
    offsets, sizes = [*view.offsets[:lead], 0, 0, 0, 0], [*([1] * lead), *shape[lead:]]
    return emit.insert(memref.SubviewOp.get(source, offsets, sizes, [1] * len(shape), kind)).result


def _room(size: Value, offset: Value, extent: int) -> Value:
    """A size; where only run time knows it and the offset is a constant, what is left of the buffer."""
    return extent - offset if not isinstance(size, int) and isinstance(offset, int) else size


def _blocks(emit: OpBuilder, size: Value, unit: int) -> Value:
    """The number of blocks of ``unit`` that a size takes."""
    return -(-size // unit) if isinstance(size, int) else emit.floordiv(emit.add(size, unit - 1), unit)


def _on_fractals(emit: OpBuilder, offset: Value, size: Value, unit: int, extent: int, *, exact: bool) -> bool:
    """Whether a part of an axis surely begins at a fractal and ends at one, or ends with the axis. Without ``exact`` it may end
    anywhere where it begins with the axis, or where only run time knows its size: nothing writes to the rest of the fractal."""
    if not _divisible(emit, offset, unit):
        return False
    if isinstance(size, int):
        return size % unit == 0 or _ends(offset, size, extent) or (offset == 0 and not exact)
    return not exact or _divisible(emit, size, unit)


def _ends(offset: Value, size: int, extent: int) -> bool:
    return isinstance(offset, int) and offset + size == extent


def _shown(value: Value) -> str:
    return str(value) if isinstance(value, int) else author_name(value, "(known when it runs)")


def _divisible(emit: OpBuilder, value: Value, unit: int) -> bool:
    """Whether a number is surely a multiple of ``unit``."""
    known = value if isinstance(value, int) else emit.ranges.constant(value)
    return (divisor(value) if known is None else known) % unit == 0
