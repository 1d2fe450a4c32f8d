"""Derives affine expressions that are nonnegative from conditions: inside ``if t + 1 < n``, ``n - t - 2`` is nonnegative."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, SSAValue

from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import Linear

_LESS = {2: 2, 3: 1, 4: -2, 5: -1}
"""The predicates slt, sle, sgt, sge: positive where the first operand is the smaller one; 2 where equality is excluded."""
_MAX_FACTS = 3
"""The maximum number of expressions known to be nonnegative whose sum is tried in order to prove one expression nonnegative."""


def nonnegative_in_block(block: Block | None, ranges: Ranges) -> Iterator[Linear[SSAValue]]:
    """Yields affine expressions that are nonnegative whenever a block is executed.

    They follow from the conditions of the ``scf.if`` operations whose true branch contains the block.
    """
    for condition in conditions_around(block):
        yield from nonnegative_under(condition, ranges)


def conditions_around(block: Block | None) -> Iterator[SSAValue]:
    """Yields the conditions of the ``scf.if`` operations whose true branch contains a block, the innermost first."""
    while block is not None:
        parent = block.parent_op()
        if isinstance(parent, scf.IfOp) and block.parent_region() is parent.true_region:
            yield parent.cond
        block = parent.parent_block() if parent is not None else None


def nonnegative_under(condition: SSAValue, ranges: Ranges) -> Iterator[Linear[SSAValue]]:
    """Yields affine expressions that are nonnegative wherever a condition holds."""
    yield from (sum_ for sum_ in conjuncts_of(condition, ranges) if sum_ is not None)


def conjuncts_of(condition: SSAValue, ranges: Ranges) -> Iterator[Linear[SSAValue] | None]:
    """Yields, for each part of a conjunction, the affine expression that is nonnegative exactly where the part holds.

    ``a < b and c <= d`` gives ``d - c`` and ``b - a - 1``. A part that is no comparison of signed integers by ``<``, ``<=``,
    ``>`` or ``>=`` gives None.
    """
    pending = [condition]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, arith.AndIOp):
            pending += owner.operands
        elif isinstance(owner, arith.CmpiOp) and (kind := owner.predicate.value.data) in _LESS:
            least, most = (affine(one, ranges.constant) for one in owner.operands)
            yield (most - least if _LESS[kind] > 0 else least - most) - Linear(abs(_LESS[kind]) - 1)
        else:
            yield None


def is_surely_nonnegative(value: Linear[SSAValue], conditions: Iterable[SSAValue], ranges: Ranges) -> bool:
    """Whether an affine expression is provably nonnegative wherever all given conditions hold.

    The proof uses the bounds of the values, the conditions, the upper bounds of loops, and ``a - b < (a // b) * b <= a`` for
    constant divisors.

    Args:
        value: the affine expression.
        conditions: truth values, as i1.
        ranges: bounds of scalars.
    """
    known = [one for condition in conditions for one in nonnegative_under(condition, ranges)]
    return _is_nonnegative(_without_idle_bounds(value, known, ranges), known, ranges, _MAX_FACTS)


def _is_nonnegative(value: Linear[SSAValue], known: Sequence[Linear[SSAValue]], ranges: Ranges, facts: int) -> bool:
    """Whether an affine expression is provably nonnegative.

    It is if it is a sum of positive multiples of at most ``facts`` affine expressions that are known to be nonnegative, plus a
    rest whose lower bound is nonnegative.
    """
    if value.bounds(ranges.of).low >= 0:
        return True
    if facts:
        for one in (*known, *(fact for atom in value.terms for fact in _facts_about(atom, ranges))):
            for atom, factor in one.terms.items():
                times, rest = divmod(value.factor(atom), factor)
                if times > 0 and not rest and _is_nonnegative(value - one * times, known, ranges, facts - 1):
                    return True
    return False


def _without_idle_bounds(value: Linear[SSAValue], known: Sequence[Linear[SSAValue]], ranges: Ranges) -> Linear[SSAValue]:
    """Returns an affine expression in which each ``min`` or ``max`` is replaced by the operand that it is provably equal to."""
    for atom, factor in value.terms.items():
        owner = atom.owner
        if isinstance(owner, (arith.MinSIOp, arith.MaxSIOp)):
            one, other = (affine(operand, ranges.constant) for operand in owner.operands)
            slack = other - one if isinstance(owner, arith.MinSIOp) else one - other
            for operand, room in ((one, slack), (other, -slack)):  # the value is ``operand`` where ``room`` is nonnegative
                if _is_nonnegative(_without_idle_bounds(room, known, ranges), known, ranges, _MAX_FACTS):
                    return _without_idle_bounds(value + factor * (operand - Linear.of(atom)), known, ranges)
    return value


def _facts_about(atom: SSAValue, ranges: Ranges) -> Iterator[Linear[SSAValue]]:
    """Yields affine expressions that contain a value and are always nonnegative.

    For the induction variable ``t`` of a loop with the end ``n`` this is ``n - t - 1``. For a quotient ``q = a // b`` by a
    positive constant these are the remainder ``a - b * q``, and ``b - 1`` minus the remainder.
    """
    owner = atom.owner
    if isinstance(owner, Block):
        loop = owner.parent_op()
        if isinstance(loop, scf.ForOp) and atom is owner.args[0]:
            yield affine(loop.ub, ranges.constant) - Linear.of(atom) - Linear(1)
    elif isinstance(owner, (arith.DivUIOp, arith.FloorDivSIOp)):
        by = ranges.constant(owner.rhs)
        if by is not None and by > 0:
            remainder = affine(owner.lhs, ranges.constant) - by * Linear.of(atom)
            yield remainder
            yield Linear[SSAValue](by - 1) - remainder


__all__ = ["conjuncts_of", "is_surely_nonnegative", "nonnegative_in_block", "nonnegative_under"]
