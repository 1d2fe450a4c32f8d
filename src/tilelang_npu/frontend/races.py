"""Points of a ``T.Parallel`` that store different values to one element.

The points have no order, so whose value stays is nobody's choice. A store names one element for several points where an index
of the loop does not appear in its place; that is well only if the value does not depend on that index, if a condition on it
lets one point through (``if i == k``, ``if mask[i]``), or if the value is made from what the element held, as in a sum: that is
computed point by point. Not judged are places that are computed (``a[i // 2]``, ``a[where[i]]``) and ``T.alloc_var`` scalars.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.names import spoken
from tilelang_npu.errors import TileError
from tilelang_npu.traced.locations import place_of

_ORDERED = ("slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def refuse_races(block: Block, names: Sequence[str], extents: Sequence[int | None]) -> None:
    """Look at the body of a loop.

    Args:
        block: the body; its arguments are the loop's indices.
        names: the author's names of the indices.
        extents: how many values each index has; None where only the device knows.

    Raises:
        TileError: T149, two points store different values to one element.
    """
    body = _Body(block)
    several = {axis for axis, extent in enumerate(extents) if extent != 1}
    for store in body.stores:
        axes = sorted(((several - body.axes_of_place(store)) & body.axes(store.value)) - body.chosen(store))
        if not axes or _is_scalar(store.memref) or body.reads_itself(store):
            continue
        said = " and ".join(repr(names[axis]) for axis in axes)
        label = spoken(store.memref, "the buffer")
        around = " around a T.Parallel over the rest" if len(axes) < len(names) else ""
        raise TileError(f"the points of T.Parallel that differ in {said} store different values to one element of {label}: "
                        f"{said} {'is' if len(axes) == 1 else 'are'} not in its place, and the points have no order",
                        code="T149", location=place_of(store.location),
                        help=f"loop over {said} with T.serial{around}, where the last value stays, or make the largest or the "
                        "sum of them with T.reduce_max or T.reduce_sum")


class _Body:
    """What the values of a loop's body depend on, as positions of the loop's indices."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.stores = [op for op in block.walk() if isinstance(op, memref.StoreOp) and tile.ATOMIC not in op.attributes]
        self._known: dict[SSAValue, frozenset[int]] = {}

    def axes(self, value: SSAValue) -> frozenset[int]:
        """The indices that a value may depend on."""
        found = self._known.get(value)
        if found is None:
            self._known[value] = frozenset()  # a value that stores feed back into: what else it depends on counts
            found = self._known[value] = self._axes(value)
        return found

    def _axes(self, value: SSAValue) -> frozenset[int]:
        if isinstance(value, BlockArgument):
            if value.block is self.block:
                return frozenset({value.index})
            loop = value.block.parent_op()
            return self._of(loop.operands) if loop is not None and self._inside(loop) else frozenset()
        owner = value.owner
        if not isinstance(owner, Operation) or not self._inside(owner):
            return frozenset()
        found = self._of(owner.operands)
        for nested in owner.walk() if owner.regions else ():
            found |= self._of(nested.operands)
        if isinstance(owner, memref.LoadOp):
            for store in self.stores:
                if store.memref is owner.memref:
                    found |= self._of((store.value, *store.indices))
        return found

    def _of(self, values: Sequence[SSAValue]) -> frozenset[int]:
        return frozenset().union(*(self.axes(value) for value in values))

    def _inside(self, op: Operation) -> bool:
        here: Operation | None = op
        while here is not None:
            if here.parent is self.block:
                return True
            here = here.parent_op()
        return False

    def axes_of_place(self, store: memref.StoreOp) -> frozenset[int]:
        """The indices that appear in a store's place."""
        return self._of(store.indices)

    def reads_itself(self, store: memref.StoreOp) -> bool:
        """Whether the value is made from what the buffer held before, as in a sum."""
        return any(isinstance(value.owner, memref.LoadOp) and value.owner.memref is store.memref
                   for value in self._sources(store.value))

    def chosen(self, store: memref.StoreOp) -> frozenset[int]:
        """The indices on which a condition around the store depends otherwise than by where they lie."""
        found: frozenset[int] = frozenset()
        here = store.parent_op()
        while here is not None and self._inside(here):
            if isinstance(here, scf.IfOp):
                found |= self._picked(here.cond)
            here = here.parent_op()
        return found

    def _picked(self, condition: SSAValue) -> frozenset[int]:
        owner = condition.owner
        if isinstance(owner, arith.AndIOp):
            return self._picked(owner.lhs) | self._picked(owner.rhs)
        ordered = isinstance(owner, arith.CmpiOp) and arith.CMPI_COMPARISON_OPERATIONS[owner.predicate.value.data] in _ORDERED
        if ordered and not any(isinstance(value.owner, memref.LoadOp) for value in self._sources(condition)):
            return frozenset()
        return self.axes(condition)

    def _sources(self, value: SSAValue) -> set[SSAValue]:
        """The values in the body that one is made from, itself too."""
        todo, seen = [value], set[SSAValue]()
        while todo:
            value = todo.pop()
            owner = value.owner
            if value not in seen and isinstance(owner, Operation) and self._inside(owner):
                seen.add(value)
                todo.extend(operand for op in owner.walk() for operand in op.operands)
        return seen


def _is_scalar(value: SSAValue) -> bool:
    """Whether it is the memory of a ``T.alloc_var``: one element on no chip memory that the author named."""
    kind = value.type
    local = tile.ScopeAttr(tile.OpenMemory.LOCAL)
    return isinstance(kind, MemRefType) and kind.get_shape() == (1,) and kind.memory_space == local
