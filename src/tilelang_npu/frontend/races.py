"""Finds races in ``T.Parallel``: points (iterations) that store different values to the same element.

The points of a ``T.Parallel`` have no order, so the final value of such an element would be arbitrary. A store writes the same
element at several points if a variable of the loop does not occur in the element's index. It is not a race in three cases: the
value does not depend on that variable; a condition on the variable selects points (``if i == k``, ``if mask[i]``); or the value
is computed from the element's old value, as in a sum. Stores with computed indices (``a[i // 2]``, ``a[where[i]]``) and stores
to ``T.alloc_var`` and ``T.alloc_local`` are not checked, since each point uses them for itself.

A loop in which a point reads an element that another point stores (``x[i, j] = x[j, i]``) depends on the order of the points
too. It is executed point by point, as by ``T.serial``, and leads to a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.errors import TileError
from tilelang_npu.linear import Linear
from tilelang_npu.traced.locations import place_of

_ORDERED = ("slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def refuse_races(block: Block, names: Sequence[str], extents: Sequence[int | None]) -> None:
    """Raises an error if the body of a ``T.Parallel`` has a race.

    Args:
        block: the body; its arguments are the loop's variables.
        names: the names of the variables in the kernel's source.
        extents: the number of values of each variable; None if the number is not constant.

    Raises:
        TileError: T149, two points store different values to the same element.
    """
    body = _Body(block)
    several = {axis for axis, extent in enumerate(extents) if extent != 1}
    for store in body.stores:
        axes = sorted(((several - body.axes_of_place(store)) & body.axes(store.value)) - body.chosen(store))
        if not axes or _is_scalar_storage(store.memref) or body.reads_itself(store):
            continue
        said = " and ".join(repr(names[axis]) for axis in axes)
        label = author_name(store.memref, "the buffer")
        around = " around a T.Parallel over the rest" if len(axes) < len(names) else ""
        raise TileError(f"the points of T.Parallel that differ in {said} store different values to one element of {label}: "
                        f"{said} {'is' if len(axes) == 1 else 'are'} not in its index, and the points have no order",
                        code="T149", location=place_of(store.location),
                        help=f"loop over {said} with T.serial{around}, where the last value remains, or reduce the values with "
                        "T.reduce_max or T.reduce_sum")


MOST_POINTS = 1 << 12
"""The largest number of points of a loop that are compared; of a larger loop, only a corner of at most so many points is."""


def order_matters(block: Block, names: Sequence[str], extents: Sequence[int | None]) -> Iterator[TileError]:
    """Yields a warning for each load in a ``T.Parallel`` that at some point reads an element which another point stores.

    Args:
        block: the body; its arguments are the loop's variables.
        names: the names of the variables in the kernel's source.
        extents: the number of values of each variable; None if the number is not constant, and then nothing is yielded.
    """
    body = _Body(block)
    sizes = _corner([extent for extent in extents if extent is not None])
    for load in block.ops if None not in extents else ():
        if not isinstance(load, memref.LoadOp):
            continue
        for store in body.stores:
            if store.memref is not load.memref or store.parent is not block or _is_scalar_storage(store.memref):
                continue
            found = _other_point(block, sizes, [affine(index) for index in store.indices],
                                 [affine(index) for index in load.indices])
            if found is not None:
                reader, writer = (", ".join(f"{name} = {at}" for name, at in zip(names, point, strict=True)) for point in found)
                label = author_name(store.memref, "the buffer")
                yield TileError(f"a point of T.Parallel ({reader}) reads an element of {label} that another one ({writer}) "
                                "stores: the points are executed one after another, the last index fastest",
                                code="T149", location=place_of(load.location),
                                help=f"to read the old values, T.copy {label} to a second buffer before the loop and read"
                                " that; if the order is intended, use T.serial")


def _corner(extents: Sequence[int]) -> list[int]:
    sizes = list(extents)
    while prod(sizes) > MOST_POINTS:
        largest = max(range(len(sizes)), key=sizes.__getitem__)
        sizes[largest] = -(-sizes[largest] // 2)
    return sizes


def _other_point(block: Block, sizes: Sequence[int], stored: Sequence[Linear[SSAValue]], read: Sequence[Linear[SSAValue]]
                 ) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """A point that reads an element and a different one that stores it.

    None where there are none, or where an index is not a sum of the loop's variables and of values that both accesses share.
    """
    if len(stored) != len(read) or list(stored) == list(read):
        return None
    places: list[tuple[Linear[SSAValue], Linear[SSAValue]]] = []
    for one, other in zip(stored, read, strict=True):
        rests = [{atom: factor for atom, factor in side.terms.items()
                  if not (isinstance(atom, BlockArgument) and atom.block is block)} for side in (one, other)]
        if rests[0] != rests[1] or any(_varies(block, atom) for atom in rests[0]):
            return None
        places.append((one, other))
    writers: dict[tuple[int, ...], tuple[int, ...]] = {}
    points = list(product(*map(range, sizes)))
    for point in points:
        writers[tuple(_at(block, one, point) for one, _ in places)] = point
    for point in points:
        writer = writers.get(tuple(_at(block, other, point) for _, other in places))
        if writer is not None and writer != point:
            return point, writer
    return None


def _varies(block: Block, atom: SSAValue) -> bool:
    """Whether a value is computed in the body, and may differ between points."""
    here = atom.owner if isinstance(atom.owner, Block) else atom.owner.parent
    while here is not None:
        if here is block:
            return True
        here = here.parent_block()
    return False


def _at(block: Block, place: Linear[SSAValue], point: Sequence[int]) -> int:
    return place.constant + sum(factor * point[atom.index] for atom, factor in place.terms.items()
                                if isinstance(atom, BlockArgument) and atom.block is block)


class _Body:
    """The loop variables that values in the body depend on, by position."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.stores = [op for op in block.walk() if isinstance(op, memref.StoreOp) and tile.ATOMIC not in op.attributes]
        self._known: dict[SSAValue, frozenset[int]] = {}

    def axes(self, value: SSAValue) -> frozenset[int]:
        """The variables that a value may depend on."""
        found = self._known.get(value)
        if found is None:
            self._known[value] = frozenset()  # ends the recursion where stores feed the value back into itself
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
        """The variables in the index of a store."""
        return self._of(store.indices)

    def reads_itself(self, store: memref.StoreOp) -> bool:
        """Whether the value is computed from the buffer's old contents, as in a sum."""
        return any(isinstance(value.owner, memref.LoadOp) and value.owner.memref is store.memref
                   for value in self._sources(store.value))

    def chosen(self, store: memref.StoreOp) -> frozenset[int]:
        """The variables of which the conditions around the store choose a single value."""
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
        """The value and the values in the body that it is computed from."""
        todo, seen = [value], set[SSAValue]()
        while todo:
            value = todo.pop()
            owner = value.owner
            if value not in seen and isinstance(owner, Operation) and self._inside(owner):
                seen.add(value)
                todo.extend(operand for op in owner.walk() for operand in op.operands)
        return seen


def _is_scalar_storage(value: SSAValue) -> bool:
    """Whether a value is the memory of a ``T.alloc_var`` or a ``T.alloc_local``, which a point uses for itself."""
    kind = value.type
    return isinstance(kind, MemRefType) and kind.memory_space == tile.ScopeAttr(tile.OpenMemory.LOCAL)
