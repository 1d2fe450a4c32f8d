"""What the branches around a place say of numbers there: ``t + 1 < n`` holds where ``if t + 1 < n`` is taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects import arith, scf
from xdsl.ir import Block, SSAValue

from tilelang_npu.dialects.affine_sums import affine
from tilelang_npu.linear import Linear
from tilelang_npu.transforms.ir.ranges import Ranges

_LESS = {2: 2, 3: 1, 4: -2, 5: -1}
"""The predicates slt, sle, sgt and sge: 1 where the first number is the smaller one or equal, 2 where it is smaller."""


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
    """Whether a sum is not negative where conditions hold: by the bounds of its numbers, or as one of them says."""
    if value.bounds(ranges.of).low >= 0:
        return True
    for known in (known for condition in conditions for known in said(condition, ranges)):
        for atom, factor in known.terms.items():
            times, rest = divmod(value.factor(atom), factor)
            if times > 0 and not rest and (value - known * times).bounds(ranges.of).low >= 0:
                return True
    return False


__all__ = ["leaves", "natural", "said", "surely_natural"]
