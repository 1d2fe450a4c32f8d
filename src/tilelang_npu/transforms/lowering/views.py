"""Lowered buffers and the views of them that tile operands are.

A view stays symbolic (offsets and sizes per axis of its buffer) until an operation needs a memref; only then a
subview is emitted, so that the copies can still clip it against the tensor and the Cube side can turn it into
fractals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StridedLayoutAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilelang_npu.ops import DType, dtype
from tilelang_npu.transforms.emit import Emitter, Value
from tilelang_npu.transforms.locations import refuse

FRACTAL_BYTES = 32  # one row of a fractal (hivm.md section 2, shapes)
FRACTAL_ROWS = 16


@dataclass(frozen=True)
class Buffer:
    """A lowered allocation or kernel argument.

    Attributes:
        value: the memref; two-dimensional buffers of L1 and L0C are four-dimensional here (zN fractals).
        space: the memory, as HIVM spells it.
        shape: the logical shape.
        label: the user's name.
    """

    value: SSAValue
    space: str
    shape: tuple[Value, ...]
    label: str

    @property
    def element(self) -> Attribute:
        kind = self.value.type
        assert isinstance(kind, MemRefType)
        element: Attribute = kind.element_type
        return element

    @property
    def dtype(self) -> DType:
        return dtype(str(self.element))

    @property
    def fractal(self) -> bool:
        """Whether the memref has the zN layout."""
        return self.space in ("cbuf", "cc")


@dataclass(frozen=True)
class View:
    """A rectangle of a buffer; ``axes`` gives, per axis of the view, the buffer's axis or None for a unit axis of its
    own.
    """

    buffer: Buffer
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


def whole(buffer: Buffer) -> View:
    """All of a buffer."""
    rank = len(buffer.shape)
    return View(buffer, (0,) * rank, buffer.shape, tuple(range(rank)))


def fractal_shape(rows: int, columns: int, element: DType, *, accumulator: bool) -> tuple[int, int, int, int]:
    """The zN shape of a matrix: [columns/c0, rows/16, 16, c0], c0 = 32 bytes of A and B, 16 elements of C."""
    c0 = 16 if accumulator else FRACTAL_BYTES // element.nbytes
    return -(-columns // c0), -(-rows // FRACTAL_ROWS), FRACTAL_ROWS, c0


def materialise(emit: Emitter, view: View, op: Operation) -> SSAValue:
    """The memref of a view; ``op`` is the operation it is for, named where the view cannot be had."""
    if view.buffer.fractal:
        return _fractal_view(emit, view, op)
    if view.whole:
        return view.buffer.value
    kept = [axis for axis in view.axes if axis is not None]
    if None in view.axes or kept != sorted(kept):
        return _reinterpreted(emit, view)
    return _subview(emit, view, kept)


def _subview(emit: Emitter, view: View, kept: list[int]) -> SSAValue:
    source = view.buffer.value
    assert isinstance(source.type, MemRefType)
    strides = list(source.type.get_strides() or [None] * len(view.sizes))
    shape = [size if isinstance(size, int) else DYNAMIC_INDEX for size in view.sizes]
    layout = StridedLayoutAttr([strides[axis] for axis in kept], _static_offset(source.type, strides, view.offsets))
    kind = MemRefType(source.type.element_type, [shape[axis] for axis in kept], layout, source.type.memory_space)
    made = memref.SubviewOp.get(source, list(view.offsets), list(view.sizes), [1] * len(view.sizes), kind)
    return emit.insert(made).result


def _static_offset(kind: MemRefType[Attribute], strides: list[int | None], offsets: tuple[Value, ...]) -> int | None:
    total: int | None = kind.layout.get_offset() if isinstance(kind.layout, StridedLayoutAttr) else 0
    for offset, stride in zip(offsets, strides, strict=True):
        if total is None or (offset != 0 and not (isinstance(offset, int) and stride is not None)):
            return None
        if isinstance(offset, int) and offset != 0 and stride is not None:
            total += offset * stride
    return total


def _reinterpreted(emit: Emitter, view: View) -> SSAValue:
    """A view with unit axes of its own: the same storage under explicit offset, sizes and strides."""
    source = view.buffer.value
    assert isinstance(source.type, MemRefType)
    strides = list(source.type.get_strides() or [])
    assert all(stride is not None for stride in strides), "on-chip buffers have static strides"
    offset: Value = 0
    for position, stride in zip(view.offsets, strides, strict=True):
        offset = emit.add(offset, emit.mul(position, stride or 0))
    sizes, steps = list(view.shape), [1 if axis is None else strides[axis] or 1 for axis in view.axes]
    layout = StridedLayoutAttr(steps, offset if isinstance(offset, int) else None)
    shape = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
    kind = MemRefType(source.type.element_type, shape, layout, source.type.memory_space)
    made = memref.ReinterpretCastOp.from_dynamic(source, [offset], sizes, steps, kind)
    result: SSAValue = emit.insert(made).result
    return result


def _fractal_view(emit: Emitter, view: View, op: Operation) -> SSAValue:
    """A view of an L1 or L0C matrix: a rectangle of whole fractals."""
    buffer = view.buffer
    if view.covers:
        return buffer.value
    assert isinstance(buffer.value.type, MemRefType)
    *_, r0, c0 = buffer.value.type.get_shape()
    row, column = view.offsets[-2], view.offsets[-1]
    rows, columns = view.sizes[-2], view.sizes[-1]
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise refuse(op, f"a slice of {buffer.label} has a size known only at run time", "T220",
                     help="slice L1 and L0C buffers with constant sizes")
    aligned = all(isinstance(o, int) and o % unit == 0 for o, unit in ((row, r0), (column, c0)))
    ends = (isinstance(row, int) and (rows % r0 == 0 or row + rows == buffer.shape[-2]),
            isinstance(column, int) and (columns % c0 == 0 or column + columns == buffer.shape[-1]))
    if not aligned or not all(ends):
        raise refuse(op, f"a slice of {buffer.label} does not fall on whole fractals of {r0} x {c0}", "T221",
                     notes=(f"the slice is rows {row}..+{rows}, columns {column}..+{columns}",),
                     help=f"use offsets and sizes that are multiples of {r0} rows and {c0} columns")
    assert isinstance(row, int) and isinstance(column, int)
    sizes = [-(-columns // c0), -(-rows // r0), r0, c0]
    source = buffer.value.type
    strides = list(source.get_strides() or [])
    offset = (column // c0) * (strides[0] or 0) + (row // r0) * (strides[1] or 0)
    layout = StridedLayoutAttr(strides, offset)
    kind = MemRefType(source.element_type, sizes, layout, source.memory_space)
    made = memref.SubviewOp.get(buffer.value, [column // c0, row // r0, 0, 0], sizes, [1, 1, 1, 1], kind)
    return emit.insert(made).result
