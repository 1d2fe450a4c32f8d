"""What the branches around a place say of numbers there: ``t + 1 < n`` holds where ``if t + 1 < n`` is taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, SSAValue

from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.linear import Linear
from tilelang_npu.transforms.ir.ranges import Ranges

_LESS = {2: 2, 3: 1, 4: -2, 5: -1}
"""The predicates slt, sle, sgt and sge: 1 where the first number is the smaller one or equal, 2 where it is smaller."""

_STEPS = 3
"""So many things that are known are put together."""


def natural(block: Block | None, ranges: Ranges) -> Iterator[Linear[SSAValue]]:
    """What is not negative where the operations of a block run, as the branches around it say."""
    while block is not None:
        around = block.parent_op()
        if isinstance(around, scf.IfOp) and block.parent_region() is around.true_region:
            yield from said(around.cond, ranges)
        block = around.parent_block() if around is not None else None


def said(condition: SSAValue, ranges: Ranges) -> Iterator[Linear[SSAValue]]:
    """What is not negative where a condition holds."""
    yield from (sum_ for sum_ in leaves(condition, ranges) if sum_ is not None)


def leaves(condition: SSAValue, ranges: Ranges) -> Iterator[Linear[SSAValue] | None]:
    """Sums that are all natural where a condition holds, and nowhere else; None for what is no such sum."""
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


def surely_natural(value: Linear[SSAValue], conditions: Iterable[SSAValue], ranges: Ranges) -> bool:
    """Whether a sum is not negative where conditions hold: by the bounds of its numbers, as one of them says, as loops go, or
    as a quotient times its divisor is no more than what was divided, and less than a divisor below it."""
    known = [one for condition in conditions for one in said(condition, ranges)]
    return _natural(_unbounded(value, known, ranges), known, ranges, _STEPS)


def _natural(value: Linear[SSAValue], known: Sequence[Linear[SSAValue]], ranges: Ranges, steps: int) -> bool:
    """Whether a sum is what is known not to be negative, so many times at most, and something that never is."""
    if value.bounds(ranges.of).low >= 0:
        return True
    if steps:
        for one in (*known, *(fact for atom in value.terms for fact in _facts(atom, ranges))):
            for atom, factor in one.terms.items():
                times, rest = divmod(value.factor(atom), factor)
                if times > 0 and not rest and _natural(value - one * times, known, ranges, steps - 1):
                    return True
    return False


def _unbounded(value: Linear[SSAValue], known: Sequence[Linear[SSAValue]], ranges: Ranges) -> Linear[SSAValue]:
    """A sum without the bounds put to its numbers that they keep anyway."""
    for atom, factor in value.terms.items():
        for within, room in _bounded(atom, ranges):
            if _natural(_unbounded(room, known, ranges), known, ranges, _STEPS):
                return _unbounded(value + factor * (within - Linear.of(atom)), known, ranges)
    return value


def _bounded(atom: SSAValue, ranges: Ranges) -> Iterator[tuple[Linear[SSAValue], Linear[SSAValue]]]:
    """Of a number with a bound put to it, what it is where a sum is not negative."""
    owner = atom.owner
    if isinstance(owner, (arith.MinSIOp, arith.MaxSIOp)):
        one, other = (affine(operand, ranges.constant) for operand in owner.operands)
        room = other - one if isinstance(owner, arith.MinSIOp) else one - other
        yield from ((one, room), (other, -room))


def _facts(atom: SSAValue, ranges: Ranges) -> Iterator[Linear[SSAValue]]:
    """What is not negative of a number: up to the end of its loop, and what a division leaves."""
    owner = atom.owner
    if isinstance(owner, Block):
        loop = owner.parent_op()
        if isinstance(loop, scf.ForOp) and atom is owner.args[0]:
            yield affine(loop.ub, ranges.constant) - Linear.of(atom) - Linear(1)
    elif isinstance(owner, (arith.DivUIOp, arith.FloorDivSIOp)):
        by = ranges.constant(owner.rhs)
        if by is not None and by > 0:
            left = affine(owner.lhs, ranges.constant) - by * Linear.of(atom)
            yield left
            yield Linear[SSAValue](by - 1) - left


__all__ = ["leaves", "natural", "said", "surely_natural"]
