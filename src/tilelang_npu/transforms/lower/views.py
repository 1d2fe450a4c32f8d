"""Lowered buffers and the views of them that tile operands are.

A view stays symbolic (offsets and sizes per axis of its buffer) until an operation needs a memref; only then a
subview is emitted, so that the copies can still clip it against the tensor and the Cube side can turn it into
fractals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StridedLayoutAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilelang_npu.dialects import hacc, tile
from tilelang_npu.dialects.declaration import dtype_of
from tilelang_npu.dialects.names import spoken
from tilelang_npu.dialects.rules import offset_of_slice
from tilelang_npu.ops import DType
from tilelang_npu.target import core_of, is_fractal
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.emit import OpBuilder, Value
from tilelang_npu.transforms.ir.locations import refuse

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


def broadcast_axes(inputs: list[View], target: View) -> list[int]:
    """Axes along which an input of size 1 is repeated."""
    return [axis for axis, size in enumerate(target.shape)
            if size != 1 and any(view.shape[axis] == 1 for view in inputs)]


def materialise(emit: OpBuilder, view: View, op: Operation) -> SSAValue:
    """The memref of a view; ``op`` is the operation it is for, named where the view cannot be had."""
    if view.buffer.fractal:
        return _fractal_view(emit, view, op)
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
    source = view.buffer.value
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
    made = memref.ReinterpretCastOp.from_dynamic(source, [offset], list(shape), steps, kind)
    return whole(replace(buffer, value=emit.insert(made).result, shape=shape, start=offset))


def _fractal_view(emit: OpBuilder, view: View, op: Operation) -> SSAValue:
    """A view of a matrix in L1 or L0: a rectangle of whole fractals of one of the matrices that the buffer holds.

    What a copy writes may start at any row, because the rows of a panel of columns lie one after another.
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
    writes = isinstance(op, tile.CopyOp) and buffer.space == "cbuf" and root_of(op.target) is not root_of(op.source)
    fills = writes and space_of(op.operands[1]) == "cbuf"
    columns = _room(op, view, columns, column, have_columns)
    if fills and not isinstance(rows, int) and not isinstance(row, int):
        rows_fit = False  # wherever they start and end: rows of a panel of columns lie one after another
    else:
        rows = _room(op, view, rows, row, have_rows)
        rows_fit = _divisible(emit, row, r0) and (rows % r0 == 0 or row == 0 or _ends(row, rows, have_rows))
    columns_fit = _divisible(emit, column, c0) and (columns % c0 == 0 or column == 0 or _ends(column, columns, have_columns))
    if not columns_fit or not (rows_fit or fills):
        raise refuse(op, f"a slice of {buffer.label} does not fall on whole fractals of {r0} x {c0}", "T221",
                     notes=(f"the slice has {_shown(rows)} rows from row {_shown(row)} on, {columns} columns from column "
                            f"{_shown(column)} on",),
                     help=f"use offsets and sizes that are multiples of {r0} rows and {c0} columns")
    strides = [stride or 0 for stride in source.get_strides() or []]
    offset: Value = emit.mul(emit.floordiv(column, c0), strides[-4])
    offset = emit.add(offset, emit.mul(row, strides[-2]))
    for position, stride in zip(view.offsets[:-2], strides, strict=False):
        offset = emit.add(offset, emit.mul(position, stride))
    panels, layout = -(-columns // c0), StridedLayoutAttr(strides[-4:], offset if isinstance(offset, int) else None)
    sizes: list[Value] = [panels, 1, rows, c0]
    if rows_fit and isinstance(rows, int):
        sizes = [panels, -(-rows // r0), r0, c0]
    shape = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
    kind = MemRefType(source.element_type, shape, layout, source.memory_space)
    if not lead and rows_fit and isinstance(offset, int):
        made = memref.SubviewOp.get(buffer.value, [emit.floordiv(column, c0), emit.floordiv(row, r0), 0, 0], sizes,
                                    [1, 1, 1, 1], kind)
        return emit.insert(made).result
    from_vector = fills and isinstance(op, tile.CopyOp) and core_of(space_of(op.source)) == "AIV"
    if lead and rows_fit and from_vector:  # the matrix first: flags between the cores are by the slots of a ring
        matrix = _matrix(emit, view)
        cut = [emit.floordiv(column, c0), emit.floordiv(row, r0), 0, 0]
        return emit.insert(memref.SubviewOp.get(matrix, cut, sizes, [1, 1, 1, 1], kind)).result
    cast = memref.ReinterpretCastOp.from_dynamic(buffer.value, [offset], sizes, strides[-4:], kind)
    result: SSAValue = emit.insert(cast).result
    return result


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


def _room(op: Operation, view: View, size: Value, offset: Value, extent: int) -> int:
    """A size, or where only run time knows it, what is left of the buffer."""
    if isinstance(size, int):
        return size
    if isinstance(offset, int):
        return extent - offset
    raise refuse(op, f"a slice of {view.buffer.label} has a start and a size known only at run time", "T221",
                 help="let it start at a constant, or give it a constant size")


def _ends(offset: Value, size: int, extent: int) -> bool:
    return isinstance(offset, int) and offset + size == extent


def _shown(value: Value) -> str:
    return str(value) if isinstance(value, int) else spoken(value, "(known when it runs)")


def _divisible(emit: OpBuilder, value: Value, unit: int) -> bool:
    """Whether a position is surely a multiple of ``unit``."""
    if isinstance(value, int):
        return value % unit == 0
    known = emit.ranges.constant(value)
    if known is not None:
        return known % unit == 0
    owner = value.owner
    if isinstance(owner, arith.MuliOp):
        return any(_divisible(emit, operand, unit) for operand in owner.operands)
    if isinstance(owner, (arith.AddiOp, arith.SubiOp)):
        return all(_divisible(emit, operand, unit) for operand in owner.operands)
    if isinstance(owner, Block) and isinstance(loop := owner.parent_op(), scf.ForOp):
        return value is loop.body.block.args[0] and all(_divisible(emit, bound, unit) for bound in (loop.lb, loop.step))
    return False
