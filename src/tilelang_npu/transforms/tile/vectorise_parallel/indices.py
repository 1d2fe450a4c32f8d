"""Analyses the index expressions of accesses in a ``T.Parallel``, and emits the regions that all points together access."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, StridedLayoutAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.analysis.buffers import space_of
from tilelang_npu.analysis.index_sums import Index, IndexSum
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import Linear


class NotVectorisable(Exception):
    """A ``T.Parallel`` cannot be replaced by vector operations.

    Args:
        why: the reason, as text for a remark.
        edit: how the author can change the kernel so that vector operations are possible; also an attribute.
    """

    def __init__(self, why: str, edit: str) -> None:
        super().__init__(why)
        self.edit = edit


class NotVectorisableAtOnce(NotVectorisable):
    """A ``T.Parallel`` cannot be replaced by vector operations over all axes at once; over the inner axes it possibly can."""


class Invariants:
    """The loop-invariant values of a ``T.Parallel``.

    A loop-invariant value that the body computes can be computed again before the loop (:meth:`hoist`).
    """

    def __init__(self, loop: tile.ParallelOp):
        self.loop = loop
        self.body: Block = loop.body.block
        self._hoisted: dict[SSAValue, SSAValue] = {}
        self._offsets: dict[Linear[SSAValue], SSAValue] = {}

    def is_variant(self, value: SSAValue) -> bool:
        """Whether a value differs between points of the loop."""
        if isinstance(value, BlockArgument):
            return value.owner is self.body
        owner = value.owner
        assert isinstance(owner, Operation)
        if owner.parent_block() is not self.body:
            return False
        if not owner.operands:
            return False
        return any(self.is_variant(operand) for operand in owner.operands if not isinstance(operand.type, MemRefType))

    def depends_on(self, value: SSAValue, variable: SSAValue) -> bool:
        """Whether a value depends on a given variable of the loop."""
        if value is variable:
            return True
        owner = value.owner
        return isinstance(owner, Operation) and owner.parent_block() is self.body and any(
            self.depends_on(operand, variable) for operand in owner.operands)

    def hoist(self, value: SSAValue) -> SSAValue:
        """Returns the value before the loop that equals a loop-invariant value; emits its computation there if necessary."""
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

    def index_of(self, value: SSAValue) -> Index:
        """Returns an index expression as one loop variable plus an offset.

        Raises:
            NotVectorisableAtOnce: the expression is not of this form.
        """
        found = self.index_sum(value)
        index = found.index if found is not None else None
        if index is None:
            msg = "an index is not a loop variable plus an offset"
            raise NotVectorisableAtOnce(msg, "index with a loop variable plus a value that is the same at all points")
        return index

    def index_sum(self, value: SSAValue) -> IndexSum | None:
        """Returns an index expression as a sum of multiples of loop variables and an offset; None where it is no such sum."""
        parts = self.split_form(affine(value))
        if parts is None:
            return None
        terms, form = parts
        if form.known:
            return IndexSum(terms, form.constant, form)
        if form not in self._offsets:  # one value for equal sums, wherever they are computed
            self._offsets[form] = self.hoist(value) if not terms else self.emit_form(form)
        return IndexSum(terms, self._offsets[form], form)

    def split_form(self, form: Linear[SSAValue]) -> tuple[tuple[tuple[int, int], ...], Linear[SSAValue]] | None:
        """Splits an affine expression into multiples of loop variables and a loop-invariant rest.

        Returns:
            Pairs of an axis and a factor, one for each loop variable in the expression; and the rest. None if the expression
            has a value that differs between points and is no loop variable.
        """
        terms: list[tuple[int, int]] = []
        for each in list(form.terms):
            if not self.is_variant(each):
                continue
            if not isinstance(each, BlockArgument):
                return None
            terms.append((each.index, form.factor(each)))
            form = form.substitute(each, 0)
        return tuple(sorted(terms, key=lambda term: (-abs(term[1]), term[0]))), form

    def emit_form(self, form: Linear[SSAValue]) -> SSAValue:
        """Emits, before the loop, the value of a loop-invariant affine expression, as an index."""
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
    """Returns the index of each axis of an access whose elements, in the order of the loop, are a region of the buffer.

    Args:
        invariants: the loop-invariant values of the loop.
        source: the accessed buffer.
        indices: the index expressions of the access.
        extents: the sizes of the iteration space.
        every_axis: whether each loop variable must occur in the indices. That is so for a store; a load without a variable is
            broadcast along the variable's axis.

    Raises:
        NotVectorisable: the elements are no such region, or are not all inside of the buffer.
    """
    found = tuple(invariants.index_of(value) for value in indices)
    order = [index.axis for index in found if index.axis is not None]
    if order != sorted(set(order)):
        msg = "an access runs through the axes in another order than the loop"
        raise NotVectorisable(msg, "give T.Parallel its axes in the order of the access, or T.transpose the tile first")
    if every_axis and order != list(range(len(extents))):
        msg = "a store does not use every loop variable"
        edit = "let each point write a separate element, and reduce these after the loop (T.reduce_sum and the like)"
        raise NotVectorisable(msg, edit)
    if any(isinstance(index.offset, int) and index.offset < 0 for index in found):
        msg = "an access begins before the first element of its buffer"
        raise NotVectorisable(msg, "begin the loop at the first point that has an element")
    if space_of(source) != "gm":
        for axis, (index, whole) in enumerate(zip(found, tile.shape_of(source), strict=True)):
            size = 1 if index.axis is None else extents[index.axis]
            if isinstance(index.offset, int) and index.offset + size > whole:  # guards and errors are met in order
                msg = f"an access runs past axis {axis} of its buffer, which has {whole} elements"
                raise NotVectorisable(msg, "index this axis with 0" if whole == 1 else
                                      "let the loop end at the last point that has an element")
    return found


def region_of(loop: tile.ParallelOp, source: SSAValue, found: Sequence[Index], extents: Sequence[int]) -> SSAValue:
    """Emits the region of a buffer that all points of a loop access together.

    The result has one axis for each axis of the iteration space, of size 1 if the access does not use that loop variable.

    Args:
        loop: the loop, before which the region is emitted.
        source: the buffer.
        found: the index of each axis of the access (see ``indices_of``).
        extents: the sizes of the iteration space.
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
    return add_unit_axes(loop, region, order, extents)


def add_unit_axes(loop: tile.ParallelOp, region: SSAValue, order: Sequence[int], extents: Sequence[int]) -> SSAValue:
    """Emits a view of a tile that has all axes of the iteration space, with size 1 along those that the tile does not have.

    Args:
        loop: the loop, before which the view is emitted.
        region: the tile.
        order: for each axis of the tile, the axis of the iteration space to which it belongs.
        extents: the sizes of the iteration space.
    """
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
