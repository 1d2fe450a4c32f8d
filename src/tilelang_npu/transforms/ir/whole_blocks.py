"""Whether what a view shows begins at whole blocks of UB, and each of its rows does.

DMA and vector instructions reach UB in blocks of 32 bytes (docs/hardware.md#alignment): one that begins elsewhere faults on a
chip, or takes other bytes. The rows of a buffer are no whole blocks where its last axis is none; lowering gives such a buffer a
wider pitch if an operation takes its rows one by one, unless its bytes are fixed: by an address of the author's, by a view
under another shape, by an operation that counts in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.target import BLOCK
from tilelang_npu.transforms.ir.buffers import root_of, space_of, users_of


def divisor(value: SSAValue | int) -> int:
    """A number that surely divides an index; 0 stands for an index that is surely 0."""
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
class ElementPlaces:
    """Where the elements of a view in UB are.

    Attributes:
        sizes: elements per axis; -1 where only run time knows.
        strides: elements from one to the next along each axis.
        start: whether the first element is at a whole block.
        unit: elements of a block.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    start: bool
    unit: int

    @property
    def whole(self) -> bool:
        """Whether the view begins at a block, and so does each row that does not follow the one before without a gap."""
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
        """Whether each row along the last axis begins at a block, whichever of them are taken."""
        return self.start and self.strides[-1] == 1 and all(stride % self.unit == 0 for stride in self.strides[:-1])


def places_of(view: SSAValue, *, padded: bool) -> ElementPlaces:
    """Where the elements of a view are.

    Args:
        view: a buffer in UB, or a view of one.
        padded: whether the buffer behind it has rows of whole blocks.
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
        return ElementPlaces(shape, tuple(below.strides[axis] for axis in kept), start and fixed % unit == 0, unit)
    if isinstance(owner, tile.ViewOp):
        below = places_of(owner.source, padded=padded)
        if units_differ(below.sizes, shape):
            inner = iter([stride for size, stride in zip(below.sizes, below.strides, strict=True) if size != 1])
            return ElementPlaces(shape, tuple(1 if size == 1 else next(inner) for size in shape), below.start, unit)
        return ElementPlaces(shape, _dense(shape, shape[-1] if shape else 1), below.start, unit)
    last = shape[-1] if shape else 1
    return ElementPlaces(shape, _dense(shape, -(-last // unit) * unit if padded else last), True, unit)


def _dense(shape: Sequence[int], pitch: int) -> tuple[int, ...]:
    """Strides of rows that follow one another after ``pitch`` elements, without other gaps."""
    strides: list[int] = []
    step = 1
    for position, size in enumerate(reversed(shape)):
        strides.insert(0, step)
        step *= size if position else pitch
    return tuple(strides)


def is_paddable(root: SSAValue) -> bool:
    """Whether lowering may give the rows of a buffer gaps."""
    owner = root.owner
    return isinstance(owner, tile.AllocOp) and owner.address is None and not any(_fixes(op) for op in users_of(root))


def in_blocks(view: SSAValue) -> bool:
    """Whether vector instructions and DMA can take a view of a buffer in UB, or of one that may come there, as it will lie."""
    root = root_of(view)
    if space_of(root) not in ("ub", "shared", "fragment"):
        return True
    return places_of(view, padded=is_paddable(root)).whole


def _fixes(op: Operation) -> bool:
    if isinstance(op, tile.CallOp):
        return op.entry().hivm == "custom"
    return isinstance(op, tile.ViewOp) and not units_differ(tile.shape_of(op.source), tile.shape_of(op.result))


def units_differ(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes differ in axes of size 1 only."""
    return [size for size in a if size != 1] == [size for size in b if size != 1]


__all__ = ["ElementPlaces", "divisor", "in_blocks", "is_paddable", "places_of", "units_differ"]
