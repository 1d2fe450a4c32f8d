"""Finds conditions that surely hold in the first iteration of loops.

An example is the ``init`` operand ``k == 0`` of a gemm, by which the first iteration overwrites the accumulator.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import SSAValue

from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.linear import Interval


def holds_in_first_iteration(value: SSAValue, loops: Sequence[scf.ForOp], ranges: Ranges) -> bool:
    """Whether a truth value is surely true while all given loops are in their first iteration.

    Args:
        value: the truth value, an i1.
        loops: the loops.
        ranges: bounds of scalars.
    """
    owner = value.owner
    if isinstance(owner, arith.AndIOp):
        return holds_in_first_iteration(owner.lhs, loops, ranges) and holds_in_first_iteration(owner.rhs, loops, ranges)
    if isinstance(owner, arith.OrIOp):
        return holds_in_first_iteration(owner.lhs, loops, ranges) or holds_in_first_iteration(owner.rhs, loops, ranges)
    if not isinstance(owner, arith.CmpiOp):
        return ranges.constant(value) not in (None, 0)
    sides = _without_casts(owner.lhs), _without_casts(owner.rhs)
    if owner.predicate.value.data == 0 and any(  # eq
            set(sides) == {loop.body.block.args[0], _without_casts(loop.lb)} for loop in loops):
        return True
    first = Ranges()
    for loop in loops:
        start = ranges.constant(loop.lb)
        if start is not None:
            first.assume(loop.body.block.args[0], Interval.at(start))
    left, right = first.constant(sides[0]), first.constant(sides[1])
    compare = _COMPARISONS.get(owner.predicate.value.data)
    return left is not None and right is not None and compare is not None and compare(left, right)


_COMPARISONS: Mapping[int, Callable[[int, int], bool]] = {
    0: operator.eq, 1: operator.ne, 2: operator.lt, 3: operator.le, 4: operator.gt, 5: operator.ge}
"""The signed predicates of ``arith.cmpi`` by number."""


def _without_casts(value: SSAValue) -> SSAValue:
    """Returns the operand of a chain of conversions between integer types; the value itself if it is no conversion."""
    while isinstance(value.owner, (arith.IndexCastOp, arith.ExtSIOp, arith.TruncIOp)):
        value = value.owner.operands[0]
    return value
