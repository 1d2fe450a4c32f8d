"""Dependences between the points of a ``T.Parallel``: whether two accesses to one buffer can reach the same element.

A point is one iteration: a value for each loop variable. An access is a tuple with one ``IndexSum`` for each axis of the
buffer, or None for an axis whose index is no such sum. Two accesses, by a point p and by a point q, reach the same element if
their indices are equal along all axes. Two questions are answered:

- Can the indices be equal at all? They cannot if the difference along one axis is never zero. Where ``i`` is the variable of a
  loop around the ``T.Parallel``, ``s[i, j]`` and ``s[i - 1, j + 1]`` are in different rows whatever j is, because i cancels
  out. So are ``s[i % 2, j]`` and ``s[(i + 1) % 2, j + 1]``, because the rows differ by an odd number.
- Can the indices be equal for two different points? They cannot if the axes along which both accesses have the same index
  expression determine the point: ``s[a, j]`` and ``s[b, j]`` are the same element only where both points have the same j,
  whatever the rows a and b are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from math import gcd

from xdsl.dialects import arith, memref, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.analysis.buffers import root_of
from tilelang_npu.analysis.index_sums import IndexSum
from tilelang_npu.analysis.nesting import is_defined_in
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import Interval, Linear

Access = Sequence[IndexSum | None]
LoadOrStore = memref.LoadOp | memref.StoreOp
Extents = Sequence[int | None]
"""The sizes of an iteration space, one per axis; None for a size that is known only at run time."""

_MOST_SUBSTITUTIONS = 8
"""The most induction variables that are replaced by their bounds, one after the other, in one difference."""


def are_disjoint(a: Access, b: Access, extents: Extents, ranges: Ranges) -> bool:
    """Whether two accesses to one buffer surely reach different elements, whichever points execute them.

    The two points may be different, or one and the same.

    Args:
        a: the index expressions of one access.
        b: the index expressions of the other access.
        extents: the sizes of the iteration space, one per loop variable.
        ranges: bounds of scalars.
    """
    return any(x is not None and y is not None and _always_differ(x, y, extents, ranges) for x, y in zip(a, b, strict=True))


def overlap_only_at_same_point(a: Access, b: Access, extents: Extents) -> bool:
    """Whether two accesses to one buffer, executed by two different points, surely reach different elements.

    Args:
        a: the index expressions of one access.
        b: the index expressions of the other access.
        extents: the sizes of the iteration space, one per loop variable.
    """
    determined: set[int] = set()
    for x, y in zip(a, b, strict=True):
        if x is not None and y is not None and x.terms == y.terms and x.rest is not None and x.rest == y.rest:
            determined |= _axes_determined_by(x.terms, extents)
    return all(axis in determined for axis, extent in enumerate(extents) if extent != 1)


def _axes_determined_by(terms: Sequence[tuple[int, int]], extents: Extents) -> set[int]:
    """Returns the axes of the iteration space in which two points agree whenever their values of a sum are equal.

    A sum of one term determines the axis of this term. A sum of several terms determines their axes if each factor is larger
    than the largest possible sum of all terms with smaller factors, as in the digits of a number. Otherwise the result is
    empty.

    Args:
        terms: the terms of the sum, each the axis of its variable and the variable's factor.
        extents: the sizes of the iteration space.
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


def _always_differ(x: IndexSum, y: IndexSum, extents: Extents, ranges: Ranges) -> bool:
    """Whether two indices have different values, whichever points compute them."""
    if x.rest is None or y.rest is None:
        return False
    terms = [(factor, extents[axis]) for axis, factor in x.terms] + [(-factor, extents[axis]) for axis, factor in y.terms]
    varying = [(factor, extent) for factor, extent in terms if factor and extent != 1]
    rest = x.rest - y.rest
    reach = Interval.at(0)
    for factor, extent in varying:
        reach += Interval.at(factor) * (Interval(0) if extent is None else Interval(0, extent - 1))
    return (_excludes_zero(reach + bounds for bounds in _possible_bounds(rest, ranges))
            or _has_nonzero_residue(rest, [factor for factor, _ in varying], ranges))


def _excludes_zero(bounds: Iterator[Interval]) -> bool:
    return any(each.holds("!=") is True for each in bounds)


def _possible_bounds(form: Linear[SSAValue], ranges: Ranges) -> Iterator[Interval]:
    """Yields bounds of an affine expression that are computed in different ways; each of them holds.

    The first bounds follow from the bounds of each value in the expression. For the other bounds, induction variables are
    replaced by the last values that their loops allow: in ``for i in range(n): for k in range(i)``, k is below i and i is below
    n, whatever n is.
    """
    yield form.bounds(ranges.of)
    for sign in (1, -1):
        extreme = _upper_bound_form(form * sign, ranges)
        if extreme is not None:
            high = extreme.bounds(ranges.of).high
            yield Interval(high=high) if sign > 0 else Interval(low=-high)


def _upper_bound_form(form: Linear[SSAValue], ranges: Ranges) -> Linear[SSAValue] | None:
    """Returns an affine expression without induction variables that is an upper bound of ``form``.

    Returns None if ``form`` contains no induction variable.
    """
    replaced = False
    for _ in range(_MOST_SUBSTITUTIONS):
        loops = [(value, loop) for value in form.terms if (loop := _loop_of_variable(value)) is not None]
        if not loops:
            break
        # The innermost: its bounds may use the outer variables.
        value, loop = max(loops, key=lambda found: _nesting_depth(found[1]))
        if ranges.of(loop.step).low <= 0:
            break
        form = form.substitute(value, affine(loop.ub) - 1 if form.factor(value) > 0 else affine(loop.lb))
        replaced = True
    return form if replaced else None


def _loop_of_variable(value: SSAValue) -> scf.ForOp | None:
    """Returns the loop whose induction variable a value is."""
    parent = value.block.parent_op() if isinstance(value, BlockArgument) and value.index == 0 else None
    return parent if isinstance(parent, scf.ForOp) else None


def _nesting_depth(op: Operation) -> int:
    """Returns the number of operations that contain an operation."""
    above, depth = op.parent_op(), 0
    while above is not None:
        above, depth = above.parent_op(), depth + 1
    return depth


def _has_nonzero_residue(rest: Linear[SSAValue], factors: Sequence[int], ranges: Ranges) -> bool:
    """Whether ``rest`` plus any multiples of ``factors`` is never zero, because some number never divides this sum."""
    moduli = {gcd(*factors, *rest.terms.values()), *map(abs, rest.terms.values())}
    moduli.update(found[1] for value in rest.terms if (found := _as_remainder(value, ranges)) is not None)
    for modulus in moduli:
        if modulus > 1:
            form = _reduce_modulo(rest, modulus, ranges)
            if form.constant % modulus and not any(factor % modulus for factor in (*factors, *form.terms.values())):
                return True
    return False


def _reduce_modulo(form: Linear[SSAValue], modulus: int, ranges: Ranges) -> Linear[SSAValue]:
    """Returns an affine expression without remainders modulo ``modulus`` that differs from ``form`` by a multiple of
    ``modulus``.
    """
    made = Linear[SSAValue](form.constant)
    for value, factor in form.terms.items():
        found = _as_remainder(value, ranges)
        if found is not None and factor * found[1] % modulus == 0:
            made += _reduce_modulo(found[0] * factor, modulus, ranges)
        else:
            made += factor * Linear.of(value)
    return made


def _as_remainder(value: SSAValue, ranges: Ranges) -> tuple[Linear[SSAValue], int] | None:
    """Returns dividend and divisor of a value that is a remainder by a constant; None for other values."""
    owner = value.owner
    if not isinstance(owner, (arith.RemSIOp, arith.RemUIOp)):
        return None
    by = affine(owner.rhs)
    if not by.known or by.constant <= 0:
        return None
    power = by.constant & (by.constant - 1) == 0
    if isinstance(owner, arith.RemUIOp) and not power and ranges.of(owner.lhs).low < 0:
        return None  # a negative number is read as a large one, which has another remainder
    return affine(owner.lhs), by.constant


# --- accesses anywhere in a body ---------------------------------------------------------------------------------------------


def accesses_in(block: Block) -> Iterator[LoadOrStore]:
    """Yields the loads and stores in a block, those in nested loops and branches included."""
    for op in block.walk():
        if isinstance(op, (memref.LoadOp, memref.StoreOp)):
            yield op


def index_sums_of(loop: tile.ParallelOp, access: LoadOrStore) -> tuple[IndexSum | None, ...]:
    """Returns the index expressions of an access in the body of a ``T.Parallel``, one per axis of the buffer.

    None for an index that depends on a value that is computed in the body, such as the variable of a nested loop.
    """
    return tuple(_index_sum_of(loop, affine(index)) for index in access.indices)


def _index_sum_of(loop: tile.ParallelOp, form: Linear[SSAValue]) -> IndexSum | None:
    terms, rest = [], form
    for value, factor in form.terms.items():
        if value in loop.body.block.args:
            assert isinstance(value, BlockArgument)
            terms.append((value.index, factor))
            rest = rest.substitute(value, 0)
        elif is_defined_in(value, loop.body.block):
            return None
    terms.sort(key=lambda term: (-abs(term[1]), term[0]))
    return IndexSum(tuple(terms), rest.constant if rest.known else next(iter(rest.terms)), rest)


def find_dependence(loop: tile.ParallelOp, ranges: Ranges) -> tuple[Operation, Operation] | None:
    """Finds a dependence between different points: two accesses, at least one a store, that can reach the same element.

    Without a dependence, the points can be executed in any order, and their statements in any interleaving that keeps the
    order within each point.

    Returns:
        The two accesses; None where there is no dependence.
    """
    extents = [ranges.constant(extent) for extent in loop.mixed_extents()]
    accesses = list(accesses_in(loop.body.block))
    written = {root_of(op.memref) for op in accesses if isinstance(op, memref.StoreOp)}
    sums = [(op, root_of(op.memref), index_sums_of(loop, op)) for op in accesses if root_of(op.memref) in written]
    for (one, root, one_sums), (other, other_root, other_sums) in combinations_with_replacement(sums, 2):
        if root is other_root and (isinstance(one, memref.StoreOp) or isinstance(other, memref.StoreOp)) and not (
                overlap_only_at_same_point(one_sums, other_sums, extents)
                or are_disjoint(one_sums, other_sums, extents, ranges)):
            return one, other
    return None


def are_disjoint_at_each_point(one: LoadOrStore, other: LoadOrStore, ranges: Ranges) -> bool:
    """Whether two accesses to one buffer, executed by the same point, always reach different elements."""
    return any(_excludes_zero(_possible_bounds(difference, ranges)) or _has_nonzero_residue(difference, (), ranges)
               for difference in (affine(x) - affine(y) for x, y in zip(one.indices, other.indices, strict=True)))


__all__ = ["accesses_in", "are_disjoint", "are_disjoint_at_each_point", "find_dependence", "index_sums_of", "is_defined_in",
           "overlap_only_at_same_point"]
