"""Conditions in ``T.Parallel``: what is chosen is read, and nothing else.

``T.if_then_else(j > 0, x[i, j - 1], 0)`` reads ``x`` where ``j > 0`` alone; so does an ``if``. Such a choice is a branch in the
body, and is settled in the first of these ways that does:

- both sides can be computed at every point, their divisors being other than 0, and their elements being there, or beyond the
  end of a tensor, where a copy finds nothing and harms nothing: the condition selects between them;
- the condition is known for parts of the points, as ``j > 0`` is for the first column and for the others: each part is a loop
  of its own, in which nothing is left to choose;
- the condition is the same for all points: it stands around the loop, one for each of its outcomes;
- it chooses what is written to tiles: both sides are computed, and each place is written once, with what the condition
  selects of the two values, or of one and the value that is there.

What is left is decided point by point. Points are taken apart only where none reads or writes what another one writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby, islice

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.linear import Interval, Linear
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.locations import stand_in
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.parallel.dependence import are_different_at_a_point, first_shared
from tilelang_npu.transforms.tile.parallel.every_point import is_computed_anywhere, is_scalar, is_there, put_before
from tilelang_npu.transforms.tile.parallel.indices import Invariants
from tilelang_npu.transforms.tile.parallel.tensor_ends import is_a_guard

_MOST_PARTS = 27
"""Loops that one becomes at most: a point's neighbours on three axes, each with two edges."""

HERE = ("ub", "shared", "fragment")
"""What a buffer is in that is in UB, or may come there."""
_Place = tuple[SSAValue, tuple[Linear[SSAValue], ...]]
"""A buffer, and its indices."""

_SIGNS = ("==", "!=", "<", "<=", ">", ">=")
"""Of ``arith.cmpi``, by number; those behind read their operands as unsigned."""


@dataclass(frozen=True)
class Part:
    """A loop over a part of the points of another one.

    Attributes:
        loop: the loop.
        starts: the first point, by axis; empty where it is all of them.
    """

    loop: tile.ParallelOp
    starts: tuple[int, ...] = field(default=())


# --- both sides --------------------------------------------------------------------------------------------------------------


def choose_between_values(loop: tile.ParallelOp, *, clipped: bool) -> None:
    """Compute both sides of the choices in a loop of which every element is there.

    Args:
        loop: the loop, changed in place.
        clipped: what lies beyond the end of a tensor counts as there, as it does to a copy.
    """
    for op in reversed([inner for inner in loop.body.block.walk() if isinstance(inner, scf.IfOp)]):
        if _can_be_both(op, clipped=clipped):
            _take_both(op)


def _can_be_both(choice: scf.IfOp, *, clipped: bool) -> bool:
    """Whether both sides can be computed at every point."""
    for op in choice.walk():
        if isinstance(op, scf.IfOp):
            computed = bool(op.results)
        elif isinstance(op, memref.LoadOp):
            computed = is_there(op, clipped=clipped)
        else:
            computed = is_computed_anywhere(op)
        if not computed:
            return False
    return True


def choose_between_stores(loop: tile.ParallelOp) -> bool:
    """Write at all points where a condition chooses between points that write and such that do not, or write something else;
    whether there are any.

    Args:
        loop: the loop, changed in place.
    """
    found = False
    for op in reversed([inner for inner in loop.body.block.walk() if isinstance(inner, scf.IfOp) and not inner.results]):
        if _can_write_both(op):
            _write_both(op)
            found = True
    return found


def _can_write_both(choice: scf.IfOp) -> bool:
    """Whether both sides can be computed at every point, and write elements that are there to tiles."""
    seen: dict[SSAValue, SSAValue] = {}
    for op in choice.walk():
        if isinstance(op, (memref.LoadOp, memref.StoreOp)) and seen.setdefault(root_of(op.memref), op.memref) is not op.memref:
            return False
        if isinstance(op, memref.StoreOp):
            if space_of(op.memref) not in HERE or tile.ATOMIC in op.attributes or not is_there(op, clipped=False):
                return False
        elif isinstance(op, memref.LoadOp):
            if not is_there(op, clipped=True):
                return False
        elif op is not choice and not is_computed_anywhere(op):
            return False
    return not _may_meet_at_a_point(choice)


def _may_meet_at_a_point(choice: scf.IfOp) -> bool:
    """Whether a choice may write an element that it reads or writes under another name, such as ``s[a, j]`` and ``s[b, j]``.

    Its stores are moved past its other accesses, which are told apart by their index expressions.
    """
    accesses = [op for op in choice.walk() if isinstance(op, (memref.LoadOp, memref.StoreOp))]
    ranges = Ranges()
    return any(root_of(one.memref) is root_of(other.memref) and _place(one) != _place(other)
               and not are_different_at_a_point(one, other, ranges)
               for one, other in combinations(accesses, 2)
               if isinstance(one, memref.StoreOp) or isinstance(other, memref.StoreOp))


def _write_both(op: scf.IfOp) -> None:
    sides = [_stored(region.block, op) if region.blocks else {} for region in op.regions]
    for place in dict.fromkeys(place for side in sides for place in side):
        store = next(side[place] for side in sides if place in side)
        values = [side[place].value if place in side else None for side in sides]
        if None in values:  # one side leaves what is there
            there = memref.LoadOp.get(store.memref, list(store.indices))
            stand_in(store, there)
            Rewriter().insert_op(there, InsertPoint.before(op))
            values = [there.res if value is None else value for value in values]
        one, two = (value for value in values if value is not None)
        made = _choice(op.cond, one, two)
        chosen = made.results[0] if isinstance(made, Operation) else made
        for new in (made, memref.StoreOp.get(chosen, store.memref, list(store.indices))):
            if isinstance(new, Operation):
                stand_in(store, new)
                Rewriter().insert_op(new, InsertPoint.before(op))
    for side in sides:
        for store in side.values():
            store.erase()
    Rewriter.erase_op(op)


def _stored(block: Block, op: scf.IfOp) -> dict[_Place, memref.StoreOp]:
    """What a side writes last to each place. All else that it does is done in front of the choice."""
    stores: dict[_Place, memref.StoreOp] = {}
    for inner in list(block.ops):
        if isinstance(inner, scf.YieldOp):
            continue
        place = _place(inner) if isinstance(inner, (memref.LoadOp, memref.StoreOp)) else None
        inner.detach()
        if isinstance(inner, memref.StoreOp) and place is not None:
            if place in stores:
                stores[place].erase()
            stores[place] = inner
        elif isinstance(inner, memref.LoadOp) and place in stores:
            inner.res.replace_all_uses_with(stores[place].value)
            inner.erase()
        else:
            Rewriter().insert_op(inner, InsertPoint.before(op))
    return stores


def _place(op: memref.LoadOp | memref.StoreOp) -> _Place:
    return op.memref, tuple(affine(index) for index in op.indices)


def _take_both(op: scf.IfOp) -> None:
    chosen, other = (region.block for region in op.regions)
    sides = [_yielded(block) for block in (chosen, other)]
    for block in (chosen, other):
        put_before(block, op)
    values = []
    for one, two in zip(*sides, strict=True):
        made = _choice(op.cond, one, two)
        if isinstance(made, Operation):
            stand_in(op, made)
            Rewriter().insert_op(made, InsertPoint.before(op))
            made = made.results[0]
        values.append(made)
    Rewriter.replace_op(op, [], values)


def _choice(condition: SSAValue, one: SSAValue, two: SSAValue) -> SSAValue | Operation:
    if one.type == IntegerType(1):
        if _truth(two) is False:
            return condition if _truth(one) is True else arith.AndIOp(condition, one)
        if _truth(one) is True:
            return arith.OrIOp(condition, two)
    return arith.SelectOp(condition, one, two)


def _truth(value: SSAValue) -> bool | None:
    known = constant_value(value)
    return None if known is None else bool(known)


def _yielded(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    return tuple(last.operands) if isinstance(last, scf.YieldOp) else ()


# --- parts of the points -----------------------------------------------------------------------------------------------------


def settle(loop: tile.ParallelOp) -> list[Part]:
    """Settle the choices of a loop as far as can be: the loops that stand in its place, in order; it alone where it stays."""
    choose_between_values(loop, clipped=False)
    if not _open(loop) or not _are_independent(loop):
        return [Part(loop)]
    trial, copy = Block(), loop.clone()
    trial.add_op(copy)
    parts = list(islice(_taken_apart(copy, (0,) * len(loop.mixed_extents())), _MOST_PARTS + 1))
    if len(parts) > _MOST_PARTS:
        trial.erase()
        return [Part(loop)]
    for op in list(trial.ops):
        op.detach()
        Rewriter().insert_op(op, InsertPoint.before(loop))
    Rewriter.erase_op(loop)
    return [Part(part.loop) if len(parts) == 1 else part for part in parts]


def _open(loop: tile.ParallelOp) -> list[scf.IfOp]:
    """The choices of a loop of which both sides cannot be computed, outer ones first."""
    return [op for op in loop.body.block.walk() if isinstance(op, scf.IfOp) and not _can_be_both(op, clipped=True)]


def _are_independent(loop: tile.ParallelOp) -> bool:
    """Whether no point reads or writes what another point writes."""
    return first_shared(loop, Ranges()) is None and all(
        isinstance(op, (memref.LoadOp, memref.StoreOp, scf.IfOp, scf.ForOp, scf.YieldOp, tile.YieldOp)) or is_scalar(op)
        for op in loop.body.block.walk())


def _taken_apart(loop: tile.ParallelOp, starts: tuple[int, ...]) -> Iterator[Part]:
    """The loops that a loop becomes, in its place."""
    _settle_what_is_known(loop)
    choose_between_values(loop, clipped=False)
    for choice in _open(loop):
        rest = not choice.results and (_can_write_both(choice) or is_a_guard(choice))  # settled, too, where it is not known
        for leaf in _comparisons(choice.cond):
            for axis in range(len(starts)):
                runs = _runs(leaf, loop, axis, known=rest)
                if runs is not None:
                    for start, size in runs:
                        made = _part(loop, axis, start, size)
                        at = (*starts[:axis], starts[axis] + start, *starts[axis + 1:])
                        yield from _taken_apart(made, at)
                    Rewriter.erase_op(loop)
                    return
    for choice in _open(loop):
        if choice.parent_block() is loop.body.block and _is_the_same_for_all(choice.cond, loop):
            for made in _around(loop, choice):
                yield from _taken_apart(made, starts)
            Rewriter.erase_op(loop)
            return
    yield Part(loop, starts)


def _settle_what_is_known(loop: tile.ParallelOp) -> None:
    """Put the side that is taken at all points in the place of a choice."""
    for op in [inner for inner in loop.body.block.walk() if isinstance(inner, scf.IfOp)]:
        known = _decided(op.cond)
        if known is None or op.parent is None:
            continue
        region = op.true_region if known else op.false_region
        values = _yielded(region.block) if region.blocks else ()
        if region.blocks:
            put_before(region.block, op)
        Rewriter.replace_op(op, [], list(values))


def _decided(condition: SSAValue) -> bool | None:
    """Whether a condition holds at all points (True), at none (False), or that is not known."""
    owner = condition.owner
    if isinstance(owner, arith.CmpiOp):
        return _compared(owner, _difference(owner).bounds(Ranges().of))
    if isinstance(owner, (arith.AndIOp, arith.OrIOp)):
        stops = isinstance(owner, arith.OrIOp)
        sides = [_decided(owner.lhs), _decided(owner.rhs)]
        return stops if stops in sides else (None if None in sides else not stops)
    if isinstance(owner, arith.XOrIOp):
        one, two = _decided(owner.lhs), _decided(owner.rhs)
        return None if one is None or two is None else one != two
    return _truth(condition)


def _compared(op: arith.CmpiOp, difference: Interval) -> bool | None:
    """What a comparison gives for all numbers that the difference of its sides can be; None where that is not one answer."""
    predicate = op.predicate.value.data
    return difference.holds(_SIGNS[predicate]) if predicate < len(_SIGNS) else None


def _difference(op: arith.CmpiOp) -> Linear[SSAValue]:
    return affine(op.lhs) - affine(op.rhs)


def _comparisons(condition: SSAValue) -> Iterator[arith.CmpiOp]:
    owner = condition.owner
    if isinstance(owner, arith.CmpiOp):
        yield owner
    elif isinstance(owner, (arith.AndIOp, arith.OrIOp, arith.XOrIOp)):
        yield from _comparisons(owner.lhs)
        yield from _comparisons(owner.rhs)


def _runs(leaf: arith.CmpiOp, loop: tile.ParallelOp, axis: int, *, known: bool) -> list[tuple[int, int]] | None:
    """Stretches of an axis in which a comparison is known or not, each as start and size; None where there are not several.

    Where other axes have a say, it is not known in single places alone: a slope is not made of rectangles. With ``known``, too.
    """
    extents, block = loop.mixed_extents(), loop.body.block
    extent, difference = extents[axis], _difference(leaf)
    varying = {value.index: times for value, times in difference.terms.items()
               if isinstance(value, BlockArgument) and value.block is block}
    if not isinstance(extent, int) or axis not in varying:
        return None
    rest = difference.substitute(block.args[axis], 0).bounds(Ranges().of)
    places = (rest + Interval.at(value * varying[axis]) for value in range(extent))
    most = 1 if known or any(extents[other] != 1 for other in varying if other != axis) else extent
    runs, start = [], 0
    for outcome, same in groupby(_compared(leaf, place) for place in places):
        size = len(list(same))
        if outcome is None and size > most:
            return None
        runs.append((start, size))
        start += size
    return runs if 1 < len(runs) <= 3 else None


def _part(loop: tile.ParallelOp, axis: int, start: int, size: int) -> tile.ParallelOp:
    """A copy of a loop in front of it, over a stretch of an axis."""
    body = Block(arg_types=[argument.type for argument in loop.body.block.args])
    mapping: dict[SSAValue, SSAValue] = {}
    for before, after in zip(loop.body.block.args, body.args, strict=True):
        mapping[before] = after
        after.name_hint = before.name_hint
    if start:
        shift = arith.ConstantOp(IntegerAttr(start, IndexType()))
        place = arith.AddiOp(body.args[axis], shift.result)
        stand_in(loop, shift, place)
        body.add_ops([shift, place])
        mapping[loop.body.block.args[axis]] = place.result
    for op in loop.body.block.ops:
        body.add_op(op.clone(value_mapper=mapping))
    extents = loop.mixed_extents()
    extents[axis] = size
    made = tile.ParallelOp(extents, Region(body))
    stand_in(loop, made)
    Rewriter().insert_op(made, InsertPoint.before(loop))
    return made


def _is_the_same_for_all(condition: SSAValue, loop: tile.ParallelOp) -> bool:
    """Whether a condition does not change from point to point, nor by what the points do."""
    written = {root_of(op.memref) for op in loop.body.block.walk() if isinstance(op, memref.StoreOp)}
    pending = [condition]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner.parent_block() is loop.body.block:
            if owner.regions or (isinstance(owner, memref.LoadOp) and root_of(owner.memref) in written):
                return False
            pending += owner.operands
    return not Invariants(loop).depends(condition)


def _around(loop: tile.ParallelOp, choice: scf.IfOp) -> list[tile.ParallelOp]:
    """A condition around two copies of a loop, in front of it; in each of them it is known."""
    at = list(loop.body.block.ops).index(choice)
    condition = Invariants(loop).hoist(choice.cond)
    made, blocks = [], []
    for taken in (True, False):
        block, copy = Block(), loop.clone()
        block.add_ops([copy, scf.YieldOp()])
        known = arith.ConstantOp(IntegerAttr(int(taken), IntegerType(1)))
        stand_in(loop, known)
        inner = list(copy.body.block.ops)[at]
        Rewriter().insert_op(known, InsertPoint.before(inner))
        inner.operands[0] = known.result
        made.append(copy)
        blocks.append(block)
    around = scf.IfOp(condition, [], Region(blocks[0]), Region(blocks[1]))
    stand_in(loop, around)
    Rewriter().insert_op(around, InsertPoint.before(loop))
    return made


__all__ = ["HERE", "Part", "choose_between_stores", "choose_between_values", "settle"]
