"""What the index expressions of an access in ``T.Parallel`` say: one loop variable plus a constant offset per axis,
or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, StridedLayoutAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.linear import Linear
from tilelang_npu.transforms.ir.affine_sums import affine
from tilelang_npu.transforms.ir.buffers import space_of

MADE = "T.Parallel"
"""Label of the tiles that are made for a loop; no name that an author can give."""


class NotVector(Exception):
    """The loop cannot become vector work; the text says why, and ``edit`` what to change so that it can."""

    def __init__(self, why: str, edit: str) -> None:
        super().__init__(why)
        self.edit = edit


class NotVectorWhole(NotVector):
    """The loop cannot become vector work over all of its axes; over the inner ones it may."""


@dataclass(frozen=True)
class Index:
    """``axis`` (a loop variable, or None) plus ``offset`` (a value that does not change in the loop, or an integer)."""

    axis: int | None
    offset: SSAValue | int


class Invariants:
    """Values that do not depend on the loop variables; those computed inside the body are repeated in front of the
    loop.
    """

    def __init__(self, loop: tile.ParallelOp):
        self.loop = loop
        self.body: Block = loop.body.block
        self._hoisted: dict[SSAValue, SSAValue] = {}
        self._offsets: dict[Linear[SSAValue], SSAValue] = {}

    def depends(self, value: SSAValue) -> bool:
        """Whether a value changes from point to point of the loop."""
        if isinstance(value, BlockArgument):
            return value.owner is self.body
        owner = value.owner
        assert isinstance(owner, Operation)
        if owner.parent_block() is not self.body:
            return False
        if not owner.operands:
            return False
        return any(self.depends(operand) for operand in owner.operands if not isinstance(operand.type, MemRefType))

    def hoist(self, value: SSAValue) -> SSAValue:
        """The value in front of the loop."""
        owner = value.owner
        if not isinstance(owner, Operation) or owner.parent_block() is not self.body:
            return value
        known = self._hoisted.get(value)
        if known is None:
            mapping = {operand: self.hoist(operand) for operand in owner.operands}
            clone = owner.clone(value_mapper=dict(mapping))
            block = self.loop.parent_block()
            assert block is not None
            block.insert_op_before(clone, self.loop)
            known = clone.results[0]
            self._hoisted[value] = known
        return known

    def index(self, value: SSAValue) -> Index:
        """What one index expression says."""
        if isinstance(value, BlockArgument) and value.owner is self.body:
            return Index(value.index, 0)
        if not self.depends(value):
            return Index(None, self._constant(value))
        owner = value.owner
        if isinstance(owner, (arith.AddiOp, arith.SubiOp)):
            a, b = owner.lhs, owner.rhs
            if self.depends(a) and not self.depends(b):
                inner, rest = self.index(a), self._constant(b)
                if isinstance(inner.offset, int) and isinstance(rest, int):
                    total = inner.offset - rest if isinstance(owner, arith.SubiOp) else inner.offset + rest
                    return Index(inner.axis, total)
                if inner.offset == 0 and isinstance(owner, arith.AddiOp):
                    return Index(inner.axis, rest)
            elif self.depends(b) and not self.depends(a) and isinstance(owner, arith.AddiOp):
                inner, rest = self.index(b), self._constant(a)
                if inner.offset == 0:
                    return Index(inner.axis, rest)
        if isinstance(owner, arith.IndexCastOp):
            return self.index(owner.input)
        return self._sum(affine(value))

    def _sum(self, form: Linear[SSAValue]) -> Index:
        """A loop variable plus what does not change, in any order."""
        moving = [value for value in form.terms if self.depends(value)]
        variable = moving[0] if len(moving) == 1 and form.factor(moving[0]) == 1 else None
        if isinstance(variable, BlockArgument):
            rest = form.substitute(variable, 0)
            if rest not in self._offsets:
                self._offsets[rest] = self.total(rest)
            return Index(variable.index, self._offsets[rest])
        msg = "an index is not a loop variable plus an offset"
        raise NotVectorWhole(msg, "index with a loop variable plus what is the same for all points")

    def total(self, form: Linear[SSAValue]) -> SSAValue:
        """A sum in front of the loop."""
        block = self.loop.parent_block()
        assert block is not None

        def put(op: Operation) -> SSAValue:
            op.location = self.loop.location
            block.insert_op_before(op, self.loop)
            return op.results[0]

        total = put(arith.ConstantOp(IntegerAttr(form.constant, IndexType())))
        for value, times in form.terms.items():
            part = self.hoist(value)
            if not isinstance(part.type, IndexType):
                part = put(arith.IndexCastOp(part, IndexType()))
            by = put(arith.ConstantOp(IntegerAttr(times, IndexType())))
            total = put(arith.AddiOp(total, put(arith.MuliOp(part, by))))
        return total

    def _constant(self, value: SSAValue) -> SSAValue | int:
        form = affine(value)
        if form.known:
            return form.constant
        if form not in self._offsets:  # the same sum is the same offset, wherever it was computed
            self._offsets[form] = self.hoist(value)
        return self._offsets[form]


def indices_of(invariants: Invariants, source: SSAValue, indices: Sequence[SSAValue], extents: Sequence[int],
               *, every_axis: bool) -> tuple[Index, ...]:
    """What the index expressions of an access say, one for each axis of the buffer.

    Args:
        invariants: of the loop.
        source: the buffer.
        indices: its index expressions.
        extents: the box.
        every_axis: whether each loop variable must occur (a store), or may be missing (a load, which is then broadcast).

    Raises:
        NotVector: the access is no rectangle in the order of the box.
    """
    found = tuple(invariants.index(value) for value in indices)
    order = [index.axis for index in found if index.axis is not None]
    if order != sorted(set(order)):
        msg = "an access runs through the axes in another order than the loop"
        raise NotVector(msg, "give T.Parallel its axes in the order of the access, or T.transpose the tile first")
    if every_axis and order != list(range(len(extents))):
        msg = "a store does not use every loop variable"
        edit = "let each point write an element of its own, and reduce them behind the loop (T.reduce_sum and the like)"
        raise NotVector(msg, edit)
    if any(isinstance(index.offset, int) and index.offset < 0 for index in found):
        msg = "an access begins before the first element of its buffer"
        raise NotVector(msg, "begin the loop at the first point that has an element")
    if space_of(source) != "gm":
        for axis, (index, whole) in enumerate(zip(found, tile.shape_of(source), strict=True)):
            size = 1 if index.axis is None else extents[index.axis]
            if isinstance(index.offset, int) and index.offset + size > whole > 0:  # guards and errors are met in order
                msg = f"an access runs past axis {axis} of its buffer, which has {whole} elements"
                raise NotVector(msg, "let the loop end at the last point that has an element")
    return found


def region_of(loop: tile.ParallelOp, source: SSAValue, found: Sequence[Index], extents: Sequence[int]) -> SSAValue:
    """The tile that an access covers over the whole box, with one axis per axis of the box (size 1 where it does not
    vary).

    Args:
        loop: the loop; what is made stands in front of it.
        source: the buffer.
        found: what the access's indices say.
        extents: the box.
    """
    order = [index.axis for index in found if index.axis is not None]
    offsets = [index.offset for index in found]
    sizes = [1 if index.axis is None else extents[index.axis] for index in found]
    kept = [position for position, index in enumerate(found) if index.axis is not None]
    region: SSAValue = source
    block = loop.parent_block()
    assert block is not None
    if kept != list(range(len(sizes))) or any(offset != 0 for offset in offsets) or tuple(sizes) != tile.shape_of(source):
        made = tile.RegionOp(source, offsets, sizes, kept)
        made.location = loop.location
        block.insert_op_before(made, loop)
        region = made.result
    if len(kept) == len(extents):
        return region
    kind = region.type
    assert isinstance(kind, MemRefType)
    strides = list(kind.get_strides() or [])
    steps: list[int | None] = [1] * len(extents)
    shape = [1] * len(extents)
    for position, axis in enumerate(order):
        steps[axis] = strides[position]
        shape[axis] = extents[axis]
    offset = kind.layout.get_offset() if isinstance(kind.layout, StridedLayoutAttr) else 0
    view = tile.ViewOp(region, MemRefType(kind.element_type, shape, StridedLayoutAttr(steps, offset), kind.memory_space))
    view.location = loop.location
    block.insert_op_before(view, loop)
    return view.result
