"""Fills that the Vector unit does not do: of tensors, and of scalar storage.

No unit writes a number to GM, so a strip in UB holds it, and copies of the strip cover the tensor. A strip has as much of the
last axes as fits ``STRIP`` bytes; loops go over the rest. The last copy of a loop is shorter where the strip does not divide
the size. Scalar storage is filled element by element.
"""

from __future__ import annotations

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.transforms.ir.buffers import root_of, space_of, with_space
from tilelang_npu.transforms.tile.tile_temporaries import insert_before

STRIP = 16 << 10
"""Bytes of a strip: transfers of this size have full bandwidth (docs/hardware.md)."""


def is_tensor_fill(op: Operation) -> bool:
    """Whether an operation fills a tensor in GM that the kernel gets."""
    return isinstance(op, tile.FillOp) and space_of(op.target) == "gm"


def expand_tensor_fill(op: tile.FillOp, *, by_hand: bool) -> None:
    """Replace a fill of a tensor.

    Args:
        op: the fill.
        by_hand: whether the author sets the waits between statements: those between the fill of the strip and its copies, which
            are one statement to the author, are then barriers.
    """
    shape, kind = tile.shape_of(op.target), op.target.type
    assert isinstance(kind, MemRefType)
    steps = _strip(shape, dtype_of(kind.element_type).nbytes)
    strip = tile.AllocOp(f"{author_name(root_of(op.target), 'tensor')}_fill",
                         with_space(MemRefType(kind.element_type, steps), "ub"))
    insert_before(op, strip)
    _barrier(op, by_hand)
    insert_before(op, tile.FillOp(op.value, strip.result))
    _barrier(op, by_hand)
    _Writer(op).copies(strip.result, steps)
    _barrier(op, by_hand)
    Rewriter.erase_op(op)


def _barrier(op: tile.FillOp, by_hand: bool) -> None:
    if by_hand:
        insert_before(op, hivm.PipeBarrierOp("ALL"))


def _strip(shape: tuple[int, ...], width: int) -> list[int]:
    """The sizes of a strip. Of an axis that only run time knows it has what there is room for."""
    room, steps = STRIP // width, [1] * len(shape)
    for axis in reversed(range(len(shape))):
        steps[axis] = room if shape[axis] < 0 else min(shape[axis], room)
        if steps[axis] != shape[axis]:
            break
        room = max(1, room // steps[axis])
    return steps


def expand_element_fill(op: tile.FillOp) -> None:
    """Replace a fill of scalar storage by a store of each element."""
    writer = _Writer(op)
    places = [writer.loop(writer.size(axis), 1) for axis in range(len(tile.shape_of(op.target)))]
    writer.put(memref.StoreOp.get(op.value, op.target, places))
    Rewriter.erase_op(op)


class _Writer:
    """Emits operations in place of a fill, and loops around those that follow."""

    def __init__(self, fill: tile.FillOp) -> None:
        self._fill = fill
        self._before: Operation = fill

    def put(self, op: Operation) -> Operation:
        """Emit an operation with the location of the fill."""
        op.location = self._fill.location
        Rewriter().insert_op(op, InsertPoint.before(self._before))
        return op

    def index(self, value: int) -> SSAValue:
        """A constant."""
        return self.put(arith.ConstantOp(IntegerAttr(value, IndexType()))).results[0]

    def size(self, axis: int) -> SSAValue:
        """The extent of what is filled along an axis."""
        size = tile.shape_of(self._fill.target)[axis]
        if size >= 0:
            return self.index(size)
        operands = [self._fill.target, self.index(axis)]
        return self.put(memref.DimOp.create(operands=operands, result_types=[IndexType()])).results[0]

    def loop(self, end: SSAValue, step: int) -> SSAValue:
        """The induction variable of a loop in whose body all that follows is put."""
        body, last = Block(arg_types=[IndexType()]), scf.YieldOp()
        last.location = self._fill.location
        body.add_op(last)
        self.put(scf.ForOp(self.index(0), end, self.index(step), [], Region(body)))
        self._before = last
        return body.args[0]

    def copies(self, strip: SSAValue, steps: list[int]) -> None:
        """Copies of a strip to all parts of the tensor, in a loop for each axis of which the strip has a part."""
        offsets: list[int | SSAValue] = [0] * len(steps)
        parts: list[int | SSAValue] = list(steps)
        ends = {axis: self.size(axis) for axis, (size, step) in enumerate(zip(
            tile.shape_of(self._fill.target), steps, strict=True)) if size != step}
        for axis, end in ends.items():
            size, step = tile.shape_of(self._fill.target)[axis], steps[axis]
            start = offsets[axis] = self.loop(end, step)
            if size < 0 or size % step:
                left = self.put(arith.SubiOp(end, start)).results[0]
                parts[axis] = self.put(arith.MinSIOp(left, self.index(step))).results[0]
        here = strip if parts == steps else self.put(tile.RegionOp(strip, [0] * len(parts), parts)).results[0]
        self.put(tile.CopyOp(here, self.put(tile.RegionOp(self._fill.target, offsets, parts)).results[0]))


__all__ = ["STRIP", "expand_element_fill", "expand_tensor_fill", "is_tensor_fill"]
