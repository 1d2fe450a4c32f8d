"""What the index expressions of an access in ``T.Parallel`` say: one loop variable plus a constant offset per axis,
or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, StridedLayoutAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import Linear
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

    @property
    def sum(self) -> Multiples:
        """The same as a sum."""
        return Multiples(() if self.axis is None else ((self.axis, 1),), self.offset)


@dataclass(frozen=True)
class Multiples:
    """Multiples of loop variables plus an offset: ``terms`` are pairs of an axis and what it counts by, the largest first.

    ``rest`` is the offset as a sum; None where it is not known as one.
    """

    terms: tuple[tuple[int, int], ...]
    offset: SSAValue | int
    rest: Linear[SSAValue] | None = field(default=None, compare=False)

    def bounds(self, extents: Sequence[int]) -> tuple[int, int]:
        """Least and largest over a box, the offset not counted where only run time knows it."""
        start = self.offset if isinstance(self.offset, int) else 0
        ends = [(extents[axis] - 1) * factor for axis, factor in self.terms]
        return start + sum(min(0, end) for end in ends), start + sum(max(0, end) for end in ends)

    @property
    def index(self) -> Index | None:
        """The same as a loop variable plus an offset; None where it is none."""
        if not self.terms:
            return Index(None, self.offset)
        return Index(self.terms[0][0], self.offset) if len(self.terms) == 1 and self.terms[0][1] == 1 else None


def plain(places: Sequence[Multiples | None]) -> tuple[Index, ...] | None:
    """The indices of an access that is a rectangle in the order of the box; None where it is none."""
    found = tuple(place.index if place is not None else None for place in places)
    order = [index.axis for index in found if index is not None and index.axis is not None]
    return tuple(index for index in found if index is not None) if order == sorted(set(order)) and None not in found else None


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

    def depends_on(self, value: SSAValue, variable: SSAValue) -> bool:
        """Whether a value changes with one loop variable."""
        if value is variable:
            return True
        owner = value.owner
        return isinstance(owner, Operation) and owner.parent_block() is self.body and any(
            self.depends_on(operand, variable) for operand in owner.operands)

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
        """What one index expression says, of one loop variable."""
        found = self.sum(value)
        index = found.index if found is not None else None
        if index is None:
            msg = "an index is not a loop variable plus an offset"
            raise NotVectorWhole(msg, "index with a loop variable plus what is the same for all points")
        return index

    def sum(self, value: SSAValue) -> Multiples | None:
        """What one index expression says, of any number of loop variables; None where it is no sum of multiples of them."""
        parts = self.parted(affine(value))
        if parts is None:
            return None
        terms, form = parts
        if form.known:
            return Multiples(terms, form.constant, form)
        if form not in self._offsets:  # the same sum is the same offset, wherever it was computed
            self._offsets[form] = self.hoist(value) if not terms else self.total(form)
        return Multiples(terms, self._offsets[form], form)

    def parted(self, form: Linear[SSAValue]) -> tuple[tuple[tuple[int, int], ...], Linear[SSAValue]] | None:
        """A sum as the terms of ``Multiples``, and what is the same for all points; None where anything else changes."""
        terms: list[tuple[int, int]] = []
        for each in list(form.terms):
            if not self.depends(each):
                continue
            if not isinstance(each, BlockArgument):
                return None
            terms.append((each.index, form.factor(each)))
            form = form.substitute(each, 0)
        return tuple(sorted(terms, key=lambda term: (-abs(term[1]), term[0]))), form

    def total(self, form: Linear[SSAValue]) -> SSAValue:
        """A sum in front of the loop."""
        block = self.loop.parent_block()
        assert block is not None

        def put(op: Operation) -> SSAValue:
            op.location = self.loop.location
            block.insert_op_before(op, self.loop)
            return op.results[0]

        def number(constant: int) -> SSAValue:
            return put(arith.ConstantOp(IntegerAttr(constant, IndexType())))

        total = number(form.constant) if form.constant or not form.terms else None
        for value, times in form.terms.items():
            part = self.hoist(value)
            if not isinstance(part.type, IndexType):
                part = put(arith.IndexCastOp(part, IndexType()))
            if times != 1:
                part = put(arith.MuliOp(part, number(times)))
            total = part if total is None else put(arith.AddiOp(total, part))
        assert total is not None
        return total


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
    return with_unit_axes(loop, region, order, extents)


def with_unit_axes(loop: tile.ParallelOp, region: SSAValue, order: Sequence[int], extents: Sequence[int]) -> SSAValue:
    """A tile whose axes are those of the box that ``order`` lists, with all axes of the box: size 1 along the others."""
    block = loop.parent_block()
    assert block is not None
    if len(order) == len(extents):
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
