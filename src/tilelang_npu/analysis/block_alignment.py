"""Whether a view in UB, and each row of the view, starts at a multiple of 32 bytes (a block).

DMA and vector instructions access UB in blocks of 32 bytes (docs/hardware.md#alignment). An access that starts elsewhere faults
on a chip, or reads other bytes. If the last axis of a buffer is no multiple of a block, not all rows start at blocks. If an
operation accesses such a buffer row by row, lowering pads its rows to whole blocks. Lowering cannot do so if the author chose
the buffer's address, if a view shows the buffer in another shape, or if an operation relies on the buffer's bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.analysis.buffers import root_of, space_of, users_of
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.target import BLOCK


def divisor(value: SSAValue | int) -> int:
    """Returns a constant that surely divides an index; 1 if no larger divisor is known, and 0 if the index is always 0."""
    if isinstance(value, int):
        return abs(value)
    owner = value.owner
    if isinstance(owner, Block):
        loop = owner.parent_op()
        if isinstance(loop, scf.ForOp) and isinstance(value, BlockArgument) and value.index == 0:
            return math.gcd(divisor(loop.lb), divisor(loop.step))
        return 1
    if isinstance(owner, arith.ConstantOp):
        return abs(int(owner.value.value.data)) if isinstance(owner.value, IntegerAttr) else 1
    if isinstance(owner, (arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp)):
        return divisor(owner.operands[0])
    if isinstance(owner, arith.MuliOp):
        return divisor(owner.lhs) * divisor(owner.rhs)
    if isinstance(owner, (arith.AddiOp, arith.SubiOp, arith.MinSIOp, arith.MaxSIOp, arith.RemSIOp)):
        return math.gcd(divisor(owner.operands[0]), divisor(owner.operands[1]))
    if isinstance(owner, arith.SelectOp):
        return math.gcd(divisor(owner.lhs), divisor(owner.rhs))
    return 1


@dataclass(frozen=True)
class ElementLayout:
    """The positions of the elements of a view in UB, relative to blocks of 32 bytes.

    Attributes:
        sizes: the number of elements along each axis; -1 for a size that is known only at run time.
        strides: the distance, in elements, between neighbours along each axis.
        start: whether the first element is at the start of a block.
        unit: the number of elements in a block.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    start: bool
    unit: int

    @property
    def whole(self) -> bool:
        """Whether each contiguous run of elements of the view starts at the start of a block."""
        run: int | None = 1
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            if size == 1:
                continue
            if stride == run:
                run = run * size if size > 0 else None
            elif stride % self.unit:
                return False
            else:
                run = None
        return self.start

    @property
    def rows(self) -> bool:
        """Whether each row along the last axis is contiguous and starts at the start of a block."""
        return self.start and self.strides[-1] == 1 and all(stride % self.unit == 0 for stride in self.strides[:-1])


def places_of(view: SSAValue, *, padded: bool) -> ElementLayout:
    """Returns the positions of the elements of a view, relative to blocks.

    Args:
        view: a buffer in UB, or a view of a buffer in UB.
        padded: whether lowering pads the rows of the buffer to whole blocks.
    """
    owner, shape = view.owner, tile.shape_of(view)
    kind = view.type
    assert isinstance(kind, MemRefType)
    unit = max(1, BLOCK // dtype_of(kind.element_type).nbytes)
    if isinstance(owner, tile.RegionOp):
        below = places_of(owner.source, padded=padded)
        fixed, start = 0, below.start
        for offset, stride in zip(owner.mixed_offsets(), below.strides, strict=True):
            if isinstance(offset, int):
                fixed += offset * stride
            else:
                start = start and divisor(offset) * stride % unit == 0
        kept = owner.kept.get_values()
        return ElementLayout(shape, tuple(below.strides[axis] for axis in kept), start and fixed % unit == 0, unit)
    if isinstance(owner, tile.ViewOp):
        below = places_of(owner.source, padded=padded)
        if differ_in_unit_axes_only(below.sizes, shape):
            inner = iter([stride for size, stride in zip(below.sizes, below.strides, strict=True) if size != 1])
            return ElementLayout(shape, tuple(1 if size == 1 else next(inner) for size in shape), below.start, unit)
        return ElementLayout(shape, _dense_strides(shape, shape[-1] if shape else 1), below.start, unit)
    last = shape[-1] if shape else 1
    return ElementLayout(shape, _dense_strides(shape, -(-last // unit) * unit if padded else last), True, unit)


def _dense_strides(shape: Sequence[int], pitch: int) -> tuple[int, ...]:
    """Returns the row-major strides, in elements, of a shape whose rows along the last axis begin ``pitch`` elements apart."""
    strides: list[int] = []
    step = 1
    for position, size in enumerate(reversed(shape)):
        strides.insert(0, step)
        step *= size if position else pitch
    return tuple(strides)


def is_paddable(root: SSAValue) -> bool:
    """Whether lowering may pad the rows of a buffer to whole blocks.

    It may if the author did not choose the buffer's address, and no operation relies on where the buffer's elements are.
    """
    owner = root.owner
    return isinstance(owner, tile.AllocOp) and owner.address is None and not any(_fixes_bytes(op) for op in users_of(root))


def is_block_aligned(view: SSAValue) -> bool:
    """Whether each contiguous run of a view starts at a block, so that vector instructions and DMA can access the view.

    Always true for a buffer that is not in UB and cannot be placed in UB.
    """
    root = root_of(view)
    if space_of(root) not in ("ub", "shared", "fragment"):
        return True
    return places_of(view, padded=is_paddable(root)).whole


def _fixes_bytes(op: Operation) -> bool:
    """Whether an operation relies on where the elements of a buffer are, so that its rows must not be padded.

    Such operations are calls of custom operations, and views that show the buffer in another shape.
    """
    if isinstance(op, tile.CallOp):
        return op.entry().is_custom
    return isinstance(op, tile.ViewOp) and not differ_in_unit_axes_only(tile.shape_of(op.source), tile.shape_of(op.result))


def differ_in_unit_axes_only(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes are equal once the axes of size 1 are removed from both."""
    return [size for size in a if size != 1] == [size for size in b if size != 1]


__all__ = ["ElementLayout", "differ_in_unit_axes_only", "divisor", "is_block_aligned", "is_paddable", "places_of"]
