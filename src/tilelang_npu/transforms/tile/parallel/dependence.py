"""Dependences between the points of a ``T.Parallel``: whether two accesses of one buffer may reach the same element.

An access is a tuple of ``Multiples``, one for each axis of the buffer: multiples of the loop variables plus a sum of values
that are the same at all points (``rest``), or None where the index is anything else. Two accesses, made by point p and by point
q, reach the same element where they are equal along all axes. Two questions are asked of them:

- Can they be equal at all? Not where along one axis their difference is never zero. ``s[i, j]`` and ``s[i - 1, j + 1]`` are in
  different rows whatever j is, because i cancels out. So are ``s[i % 2, j]`` and ``s[(i + 1) % 2, j + 1]``, because the rows
  differ by an odd number.
- Can they be equal for different points? Not where the axes in which they agree tell the points apart: ``s[a, j]`` and
  ``s[b, j]`` are one element only where both points have the same j, whatever the rows a and b are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from math import gcd

from xdsl.dialects import arith, memref, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import Interval, Linear
from tilelang_npu.transforms.ir.buffers import root_of
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.tile.parallel.indices import Multiples

Access = Sequence[Multiples | None]
LoadOrStore = memref.LoadOp | memref.StoreOp
Extents = Sequence[int | None]
"""The sizes of a box; None where one is known only at run time."""

_MOST_BOUNDS = 8
"""Induction variables that are replaced by their bounds, one after the other, in one difference."""


def never_meet(a: Access, b: Access, extents: Extents, ranges: Ranges) -> bool:
    """Whether two accesses of one buffer never reach the same element, whichever points make them."""
    return any(x is not None and y is not None and _differ(x, y, extents, ranges) for x, y in zip(a, b, strict=True))


def meet_at_own_point(a: Access, b: Access, extents: Extents) -> bool:
    """Whether two accesses of one buffer reach the same element only where the same point makes both."""
    told_apart: set[int] = set()
    for x, y in zip(a, b, strict=True):
        if x is not None and y is not None and x.terms == y.terms and x.rest is not None and x.rest == y.rest:
            told_apart |= _told_apart(x.terms, extents)
    return all(axis in told_apart for axis, extent in enumerate(extents) if extent != 1)


def _told_apart(terms: Sequence[tuple[int, int]], extents: Extents) -> set[int]:
    """The axes along which two points with the same sum of ``terms`` are equal.

    One term alone does that. Of several, each must count by more than what the smaller ones come to, as digits of a number do.
    """
    counted = sorted(((abs(factor), extents[axis], axis) for axis, factor in terms if extents[axis] != 1 and factor),
                     key=lambda term: term[0])
    reach = 0
    for position, (factor, extent, _) in enumerate(counted):
        if factor <= reach:
            return set()
        if extent is None:
            if position < len(counted) - 1:
                return set()
        else:
            reach += factor * (extent - 1)
    return {axis for _, _, axis in counted}


def _differ(x: Multiples, y: Multiples, extents: Extents, ranges: Ranges) -> bool:
    """Whether two index expressions have different values, whichever points compute them."""
    if x.rest is None or y.rest is None:
        return False
    terms = [(factor, extents[axis]) for axis, factor in x.terms] + [(-factor, extents[axis]) for axis, factor in y.terms]
    varying = [(factor, extent) for factor, extent in terms if factor and extent != 1]
    rest = x.rest - y.rest
    reach = Interval.at(0)
    for factor, extent in varying:
        reach += Interval.at(factor) * (Interval(0) if extent is None else Interval(0, extent - 1))
    return (_never_zero(reach + bounds for bounds in _bounds(rest, ranges))
            or _never_divides(rest, [factor for factor, _ in varying], ranges))


def _never_zero(bounds: Iterator[Interval]) -> bool:
    return any(each.holds("!=") is True for each in bounds)


def _bounds(form: Linear[SSAValue], ranges: Ranges) -> Iterator[Interval]:
    """Bounds of a sum: those of its parts, and those with induction variables replaced by the ends of their loops.

    The latter know that in ``for i in range(n): for k in range(i)`` k is below i, and i below n, whatever n is.
    """
    yield form.bounds(ranges.of)
    for sign in (1, -1):
        extreme = _most(form * sign, ranges)
        if extreme is not None:
            high = extreme.bounds(ranges.of).high
            yield Interval(high=high) if sign > 0 else Interval(low=-high)


def _most(form: Linear[SSAValue], ranges: Ranges) -> Linear[SSAValue] | None:
    """A sum that ``form`` is never above, without the induction variables of loops; None where it has none."""
    replaced = False
    for _ in range(_MOST_BOUNDS):
        loops = [(value, loop) for value in form.terms if (loop := _loop_of(value)) is not None]
        if not loops:
            break
        value, loop = max(loops, key=lambda found: _depth(found[1]))  # its ends may be variables of the loops around it
        if ranges.of(loop.step).low <= 0:
            break
        form = form.substitute(value, affine(loop.ub) - 1 if form.factor(value) > 0 else affine(loop.lb))
        replaced = True
    return form if replaced else None


def _loop_of(value: SSAValue) -> scf.ForOp | None:
    """The loop whose induction variable a value is."""
    parent = value.block.parent_op() if isinstance(value, BlockArgument) and value.index == 0 else None
    return parent if isinstance(parent, scf.ForOp) else None


def _depth(op: Operation) -> int:
    """How many operations are around an operation."""
    above, depth = op.parent_op(), 0
    while above is not None:
        above, depth = above.parent_op(), depth + 1
    return depth


def _never_divides(rest: Linear[SSAValue], factors: Sequence[int], ranges: Ranges) -> bool:
    """Whether ``rest`` plus multiples of ``factors`` leaves a remainder by some number, so that it is never zero."""
    moduli = {gcd(*factors, *rest.terms.values()), *map(abs, rest.terms.values())}
    moduli.update(found[1] for value in rest.terms if (found := _remainder(value, ranges)) is not None)
    for modulus in moduli:
        if modulus > 1:
            form = _congruent(rest, modulus, ranges)
            if form.constant % modulus and not any(factor % modulus for factor in (*factors, *form.terms.values())):
                return True
    return False


def _congruent(form: Linear[SSAValue], modulus: int, ranges: Ranges) -> Linear[SSAValue]:
    """A sum that differs from ``form`` by a multiple of ``modulus``, without the remainders by it."""
    made = Linear[SSAValue](form.constant)
    for value, factor in form.terms.items():
        found = _remainder(value, ranges)
        if found is not None and factor * found[1] % modulus == 0:
            made += _congruent(found[0] * factor, modulus, ranges)
        else:
            made += factor * Linear.of(value)
    return made


def _remainder(value: SSAValue, ranges: Ranges) -> tuple[Linear[SSAValue], int] | None:
    """What a value is the remainder of, and by which number; None where it is none."""
    owner = value.owner
    if not isinstance(owner, (arith.RemSIOp, arith.RemUIOp)):
        return None
    by = affine(owner.rhs)
    if not by.known or by.constant <= 0:
        return None
    power = by.constant & (by.constant - 1) == 0
    if isinstance(owner, arith.RemUIOp) and not power and ranges.of(owner.lhs).low < 0:
        return None  # a number below zero is read as a large one, which leaves another remainder
    return affine(owner.lhs), by.constant


# --- loops with bodies of their own ------------------------------------------------------------------------------------------


def accesses_in(block: Block) -> Iterator[LoadOrStore]:
    """The loads and stores in a body, those in its loops and branches included."""
    for op in block.walk():
        if isinstance(op, (memref.LoadOp, memref.StoreOp)):
            yield op


def places_of(loop: tile.ParallelOp, access: LoadOrStore) -> tuple[Multiples | None, ...]:
    """The index expressions of an access anywhere in a loop's body; what loops in the body change is None."""
    return tuple(_place(loop, affine(index)) for index in access.indices)


def _place(loop: tile.ParallelOp, form: Linear[SSAValue]) -> Multiples | None:
    terms, rest = [], form
    for value, factor in form.terms.items():
        if value in loop.body.block.args:
            assert isinstance(value, BlockArgument)
            terms.append((value.index, factor))
            rest = rest.substitute(value, 0)
        elif is_inside(value, loop.body.block):
            return None
    terms.sort(key=lambda term: (-abs(term[1]), term[0]))
    return Multiples(tuple(terms), rest.constant if rest.known else next(iter(rest.terms)), rest)


def is_inside(value: SSAValue, block: Block) -> bool:
    """Whether a value is made inside a block, at any depth."""
    owner = value.owner
    inner = owner if isinstance(owner, Block) else owner.parent_block()
    while inner is not None:
        if inner is block:
            return True
        above = inner.parent_op()
        inner = above.parent_block() if above is not None else None
    return False


def first_shared(loop: tile.ParallelOp, ranges: Ranges) -> tuple[Operation, Operation] | None:
    """Two accesses by which different points may reach the same element, one of them a store; None where there are none.

    Where there are none, the points may be done in any order, and their statements in any interleaving that keeps each point's.
    """
    extents = [ranges.constant(extent) for extent in loop.mixed_extents()]
    accesses = list(accesses_in(loop.body.block))
    written = {root_of(op.memref) for op in accesses if isinstance(op, memref.StoreOp)}
    places = [(op, root_of(op.memref), places_of(loop, op)) for op in accesses if root_of(op.memref) in written]
    for (one, root, here), (other, other_root, there) in combinations_with_replacement(places, 2):
        if root is other_root and (isinstance(one, memref.StoreOp) or isinstance(other, memref.StoreOp)) and not (
                meet_at_own_point(here, there, extents) or never_meet(here, there, extents, ranges)):
            return one, other
    return None


def are_different_at_a_point(one: LoadOrStore, other: LoadOrStore, ranges: Ranges) -> bool:
    """Whether two accesses of one buffer reach different elements wherever the same point makes both."""
    return any(_never_zero(_bounds(difference, ranges)) or _never_divides(difference, (), ranges)
               for difference in (affine(x) - affine(y) for x, y in zip(one.indices, other.indices, strict=True)))


__all__ = ["accesses_in", "are_different_at_a_point", "first_shared", "is_inside", "meet_at_own_point", "never_meet",
           "places_of"]
