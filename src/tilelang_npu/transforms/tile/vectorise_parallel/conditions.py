"""Resolves the conditions in a ``T.Parallel``, such that no element is read or written whose condition does not hold.

``T.if_then_else(j > 0, x[i, j - 1], 0)`` reads ``x`` only where ``j > 0``; so does an ``if`` statement. Both are an ``scf.if``
in the body of the loop. It is removed in the first of these ways that applies:

- Both sides can be computed at every point, because divisors are not 0 and elements are in bounds (or beyond the end of a
  tensor, where a copy is clipped). Both are computed, and an ``arith.select`` chooses between the results.
- The condition has one outcome in each of a few ranges of an axis, as ``j > 0`` has for the first column and for all others.
  The loop is replaced by one loop for each range, without the condition.
- The condition is loop-invariant. It is hoisted: an ``scf.if`` outside contains a copy of the loop for each outcome.
- The condition chooses between stores to tiles, or between a store and none. Both sides are computed, and each element is
  stored once: the value that ``arith.select`` chooses from the two sides, or from one side and the old value.

The remaining conditions are evaluated point by point. A loop is replaced by several loops only if no point reads or writes an
element that another point writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby, islice

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.analysis.buffers import root_of, space_of
from tilelang_npu.analysis.locations import copy_location
from tilelang_npu.analysis.parallel_dependence import are_disjoint_at_each_point, find_dependence
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.linear import Interval, Linear
from tilelang_npu.transforms.tile.vectorise_parallel.bounds_guards import is_bounds_guard
from tilelang_npu.transforms.tile.vectorise_parallel.indices import Invariants
from tilelang_npu.transforms.tile.vectorise_parallel.speculation import (
    is_in_bounds,
    is_scalar,
    is_speculatable,
    move_ops_before,
)

_MOST_LOOPS = 27
"""The most loops that one becomes: a stencil on three axes, each with two edges."""

UB_SCOPES = ("ub", "shared", "fragment")
"""The memories and scopes of buffers that are in UB or may be placed there."""
_Element = tuple[SSAValue, tuple[Linear[SSAValue], ...]]
"""A buffer and the linear form of each index."""

_SIGNS = ("==", "!=", "<", "<=", ">", ">=")
"""The signed predicates of ``arith.cmpi`` by number; those after them read their operands as unsigned."""


@dataclass(frozen=True)
class SubLoop:
    """A loop over a part of the iteration space of another loop.

    Attributes:
        loop: the loop.
        starts: for each axis, the first index of the part; empty where the part is the whole iteration space.
    """

    loop: tile.ParallelOp
    starts: tuple[int, ...] = field(default=())


# --- selects -----------------------------------------------------------------------------------------------------------------


def choose_between_values(loop: tile.ParallelOp, *, clipped: bool) -> None:
    """Replaces each ``scf.if`` whose two branches can be computed at every point by both branches and an ``arith.select``.

    Args:
        loop: the loop, which is changed in place.
        clipped: whether elements beyond the end of a tensor in GM count as in bounds, as they do for a copy, which is clipped.
    """
    for op in reversed([inner for inner in loop.body.block.walk() if isinstance(inner, scf.IfOp)]):
        if _can_compute_both(op, clipped=clipped):
            _select_between_values(op)


def _can_compute_both(choice: scf.IfOp, *, clipped: bool) -> bool:
    """Whether both sides can be computed at every point."""
    for op in choice.walk():
        if isinstance(op, scf.IfOp):
            computed = bool(op.results)
        elif isinstance(op, memref.LoadOp):
            computed = is_in_bounds(op, clipped=clipped)
        else:
            computed = is_speculatable(op)
        if not computed:
            return False
    return True


def choose_between_stores(loop: tile.ParallelOp) -> bool:
    """Replaces each ``scf.if`` that chooses between stores to tiles, or between a store and none, by stores of selected values.

    Args:
        loop: the loop, which is changed in place.

    Returns:
        Whether an ``scf.if`` was replaced.
    """
    found = False
    for op in reversed([inner for inner in loop.body.block.walk() if isinstance(inner, scf.IfOp) and not inner.results]):
        if _can_select_between_stores(op):
            _select_between_stores(op)
            found = True
    return found


def _can_select_between_stores(choice: scf.IfOp) -> bool:
    """Whether both sides can be computed at every point, and store to elements of tiles that are in bounds."""
    seen: dict[SSAValue, SSAValue] = {}
    for op in choice.walk():
        if isinstance(op, (memref.LoadOp, memref.StoreOp)) and seen.setdefault(root_of(op.memref), op.memref) is not op.memref:
            return False
        if isinstance(op, memref.StoreOp):
            if space_of(op.memref) not in UB_SCOPES or tile.ATOMIC in op.attributes or not is_in_bounds(op, clipped=False):
                return False
        elif isinstance(op, memref.LoadOp):
            if not is_in_bounds(op, clipped=True):
                return False
        elif op is not choice and not is_speculatable(op):
            return False
    return not _may_alias_at_a_point(choice)


def _may_alias_at_a_point(choice: scf.IfOp) -> bool:
    """Whether a choice may store to an element that it accesses by other indices, such as ``s[a, j]`` and ``s[b, j]``.

    The stores of the choice are moved after its other accesses, and only equal index expressions are recognised as the same
    element.
    """
    accesses = [op for op in choice.walk() if isinstance(op, (memref.LoadOp, memref.StoreOp))]
    ranges = Ranges()
    return any(root_of(one.memref) is root_of(other.memref) and _element_of(one) != _element_of(other)
               and not are_disjoint_at_each_point(one, other, ranges)
               for one, other in combinations(accesses, 2)
               if isinstance(one, memref.StoreOp) or isinstance(other, memref.StoreOp))


def _select_between_stores(op: scf.IfOp) -> None:
    sides = [_hoist_and_collect_stores(region.block, op) if region.blocks else {} for region in op.regions]
    for element in dict.fromkeys(element for side in sides for element in side):
        store = next(side[element] for side in sides if element in side)
        values = [side[element].value if element in side else None for side in sides]
        if None in values:  # one side keeps the old value
            there = memref.LoadOp.get(store.memref, list(store.indices))
            copy_location(store, there)
            Rewriter().insert_op(there, InsertPoint.before(op))
            values = [there.res if value is None else value for value in values]
        one, two = (value for value in values if value is not None)
        made = _select(op.cond, one, two)
        chosen = made.results[0] if isinstance(made, Operation) else made
        for new in (made, memref.StoreOp.get(chosen, store.memref, list(store.indices))):
            if isinstance(new, Operation):
                copy_location(store, new)
                Rewriter().insert_op(new, InsertPoint.before(op))
    for side in sides:
        for store in side.values():
            store.erase()
    Rewriter.erase_op(op)


def _hoist_and_collect_stores(block: Block, op: scf.IfOp) -> dict[_Element, memref.StoreOp]:
    """Returns the last store of a side to each element; moves all its other operations before the choice."""
    stores: dict[_Element, memref.StoreOp] = {}
    for inner in list(block.ops):
        if isinstance(inner, scf.YieldOp):
            continue
        element = _element_of(inner) if isinstance(inner, (memref.LoadOp, memref.StoreOp)) else None
        inner.detach()
        if isinstance(inner, memref.StoreOp) and element is not None:
            if element in stores:
                stores[element].erase()
            stores[element] = inner
        elif isinstance(inner, memref.LoadOp) and element in stores:
            inner.res.replace_all_uses_with(stores[element].value)
            inner.erase()
        else:
            Rewriter().insert_op(inner, InsertPoint.before(op))
    return stores


def _element_of(op: memref.LoadOp | memref.StoreOp) -> _Element:
    return op.memref, tuple(affine(index) for index in op.indices)


def _select_between_values(op: scf.IfOp) -> None:
    chosen, other = (region.block for region in op.regions)
    sides = [_yielded_values(block) for block in (chosen, other)]
    for block in (chosen, other):
        move_ops_before(block, op)
    values = []
    for one, two in zip(*sides, strict=True):
        made = _select(op.cond, one, two)
        if isinstance(made, Operation):
            copy_location(op, made)
            Rewriter().insert_op(made, InsertPoint.before(op))
            made = made.results[0]
        values.append(made)
    Rewriter.replace_op(op, [], values)


def _select(condition: SSAValue, one: SSAValue, two: SSAValue) -> SSAValue | Operation:
    if one.type == IntegerType(1):
        if _constant_truth(two) is False:
            return condition if _constant_truth(one) is True else arith.AndIOp(condition, one)
        if _constant_truth(one) is True:
            return arith.OrIOp(condition, two)
    return arith.SelectOp(condition, one, two)


def _constant_truth(value: SSAValue) -> bool | None:
    known = constant_value(value)
    return None if known is None else bool(known)


def _yielded_values(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    return tuple(last.operands) if isinstance(last, scf.YieldOp) else ()


# --- splits of the iteration space -------------------------------------------------------------------------------------------


def resolve_conditions(loop: tile.ParallelOp) -> list[SubLoop]:
    """Resolves the conditions in a loop as far as possible.

    Returns:
        The loops that replace the loop, in order; or only the loop itself, which may be changed in place.
    """
    choose_between_values(loop, clipped=False)
    if not _unresolved(loop) or not _are_points_independent(loop):
        return [SubLoop(loop)]
    trial, copy = Block(), loop.clone()
    trial.add_op(copy)
    parts = list(islice(_split_at_conditions(copy, (0,) * len(loop.mixed_extents())), _MOST_LOOPS + 1))
    if len(parts) > _MOST_LOOPS:
        trial.erase()
        return [SubLoop(loop)]
    for op in list(trial.ops):
        op.detach()
        Rewriter().insert_op(op, InsertPoint.before(loop))
    Rewriter.erase_op(loop)
    return [SubLoop(part.loop) if len(parts) == 1 else part for part in parts]


def _unresolved(loop: tile.ParallelOp) -> list[scf.IfOp]:
    """Returns the choices of which both sides cannot be computed, outer ones first."""
    return [op for op in loop.body.block.walk() if isinstance(op, scf.IfOp) and not _can_compute_both(op, clipped=True)]


def _are_points_independent(loop: tile.ParallelOp) -> bool:
    """Whether no point accesses an element that another point writes."""
    return find_dependence(loop, Ranges()) is None and all(
        isinstance(op, (memref.LoadOp, memref.StoreOp, scf.IfOp, scf.ForOp, scf.YieldOp, tile.YieldOp)) or is_scalar(op)
        for op in loop.body.block.walk())


def _split_at_conditions(loop: tile.ParallelOp, starts: tuple[int, ...]) -> Iterator[SubLoop]:
    """Yields the loops that replace a loop."""
    _replace_known_conditions(loop)
    choose_between_values(loop, clipped=False)
    for choice in _unresolved(loop):
        # Resolvable even where its outcome is unknown.
        rest = not choice.results and (_can_select_between_stores(choice) or is_bounds_guard(choice))
        for leaf in _comparisons_in(choice.cond):
            for axis in range(len(starts)):
                runs = _stretches(leaf, loop, axis, known=rest)
                if runs is not None:
                    for start, size in runs:
                        made = _loop_over_stretch(loop, axis, start, size)
                        at = (*starts[:axis], starts[axis] + start, *starts[axis + 1:])
                        yield from _split_at_conditions(made, at)
                    Rewriter.erase_op(loop)
                    return
    for choice in _unresolved(loop):
        if choice.parent_block() is loop.body.block and _is_invariant_condition(choice.cond, loop):
            for made in _hoist_condition(loop, choice):
                yield from _split_at_conditions(made, starts)
            Rewriter.erase_op(loop)
            return
    yield SubLoop(loop, starts)


def _replace_known_conditions(loop: tile.ParallelOp) -> None:
    """Replaces each choice with a known outcome by the side that is taken."""
    for op in [inner for inner in loop.body.block.walk() if isinstance(inner, scf.IfOp)]:
        known = _outcome(op.cond)
        if known is None or op.parent is None:
            continue
        region = op.true_region if known else op.false_region
        values = _yielded_values(region.block) if region.blocks else ()
        if region.blocks:
            move_ops_before(region.block, op)
        Rewriter.replace_op(op, [], list(values))


def _outcome(condition: SSAValue) -> bool | None:
    """Returns whether a condition holds at all points (True) or at none (False); None where that is not known."""
    owner = condition.owner
    if isinstance(owner, arith.CmpiOp):
        return _comparison_outcome(owner, _difference_of_sides(owner).bounds(Ranges().of))
    if isinstance(owner, (arith.AndIOp, arith.OrIOp)):
        stops = isinstance(owner, arith.OrIOp)
        sides = [_outcome(owner.lhs), _outcome(owner.rhs)]
        return stops if stops in sides else (None if None in sides else not stops)
    if isinstance(owner, arith.XOrIOp):
        one, two = _outcome(owner.lhs), _outcome(owner.rhs)
        return None if one is None or two is None else one != two
    return _constant_truth(condition)


def _comparison_outcome(op: arith.CmpiOp, difference: Interval) -> bool | None:
    """Returns the outcome of a comparison for all values of the difference of its sides; None where they have no common one."""
    predicate = op.predicate.value.data
    return difference.holds(_SIGNS[predicate]) if predicate < len(_SIGNS) else None


def _difference_of_sides(op: arith.CmpiOp) -> Linear[SSAValue]:
    return affine(op.lhs) - affine(op.rhs)


def _comparisons_in(condition: SSAValue) -> Iterator[arith.CmpiOp]:
    owner = condition.owner
    if isinstance(owner, arith.CmpiOp):
        yield owner
    elif isinstance(owner, (arith.AndIOp, arith.OrIOp, arith.XOrIOp)):
        yield from _comparisons_in(owner.lhs)
        yield from _comparisons_in(owner.rhs)


def _stretches(leaf: arith.CmpiOp, loop: tile.ParallelOp, axis: int, *, known: bool) -> list[tuple[int, int]] | None:
    """Returns the stretches of an axis in which a comparison has one outcome, as start and size; None where there are not two
    or three.

    Where the comparison depends on other axes too, or with ``known``, stretches of more than one index must have a known
    outcome: a slope has no rectangular stretches.
    """
    extents, block = loop.mixed_extents(), loop.body.block
    extent, difference = extents[axis], _difference_of_sides(leaf)
    varying = {value.index: times for value, times in difference.terms.items()
               if isinstance(value, BlockArgument) and value.block is block}
    if not isinstance(extent, int) or axis not in varying:
        return None
    rest = difference.substitute(block.args[axis], 0).bounds(Ranges().of)
    places = (rest + Interval.at(value * varying[axis]) for value in range(extent))
    most = 1 if known or any(extents[other] != 1 for other in varying if other != axis) else extent
    runs, start = [], 0
    for outcome, same in groupby(_comparison_outcome(leaf, element) for element in places):
        size = len(list(same))
        if outcome is None and size > most:
            return None
        runs.append((start, size))
        start += size
    return runs if 1 < len(runs) <= 3 else None


def _loop_over_stretch(loop: tile.ParallelOp, axis: int, start: int, size: int) -> tile.ParallelOp:
    """Inserts a copy of a loop before it, over a stretch of an axis."""
    body = Block(arg_types=[argument.type for argument in loop.body.block.args])
    mapping: dict[SSAValue, SSAValue] = {}
    for before, after in zip(loop.body.block.args, body.args, strict=True):
        mapping[before] = after
        after.name_hint = before.name_hint
    if start:
        shift = arith.ConstantOp(IntegerAttr(start, IndexType()))
        element = arith.AddiOp(body.args[axis], shift.result)
        copy_location(loop, shift, element)
        body.add_ops([shift, element])
        mapping[loop.body.block.args[axis]] = element.result
    for op in loop.body.block.ops:
        body.add_op(op.clone(value_mapper=mapping))
    extents = loop.mixed_extents()
    extents[axis] = size
    made = tile.ParallelOp(extents, Region(body))
    copy_location(loop, made)
    Rewriter().insert_op(made, InsertPoint.before(loop))
    return made


def _is_invariant_condition(condition: SSAValue, loop: tile.ParallelOp) -> bool:
    """Whether a condition is the same at all points, and does not depend on what the points store."""
    written = {root_of(op.memref) for op in loop.body.block.walk() if isinstance(op, memref.StoreOp)}
    pending = [condition]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner.parent_block() is loop.body.block:
            if owner.regions or (isinstance(owner, memref.LoadOp) and root_of(owner.memref) in written):
                return False
            pending += owner.operands
    return not Invariants(loop).is_variant(condition)


def _hoist_condition(loop: tile.ParallelOp, choice: scf.IfOp) -> list[tile.ParallelOp]:
    """Inserts a branch before a loop with a copy of the loop for each outcome of a condition; returns the copies."""
    at = list(loop.body.block.ops).index(choice)
    condition = Invariants(loop).hoist(choice.cond)
    made, blocks = [], []
    for taken in (True, False):
        block, copy = Block(), loop.clone()
        block.add_ops([copy, scf.YieldOp()])
        known = arith.ConstantOp(IntegerAttr(int(taken), IntegerType(1)))
        copy_location(loop, known)
        inner = list(copy.body.block.ops)[at]
        Rewriter().insert_op(known, InsertPoint.before(inner))
        inner.operands[0] = known.result
        made.append(copy)
        blocks.append(block)
    around = scf.IfOp(condition, [], Region(blocks[0]), Region(blocks[1]))
    copy_location(loop, around)
    Rewriter().insert_op(around, InsertPoint.before(loop))
    return made


__all__ = ["UB_SCOPES", "SubLoop", "choose_between_stores", "choose_between_values", "resolve_conditions"]
