"""Conditions that surely hold in the first iteration of loops, as the ``init`` of a gemm that starts its accumulator."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import SSAValue

from tilelang_npu.linear import Interval
from tilelang_npu.transforms.ir.ranges import Ranges


def holds_first(value: SSAValue, loops: Sequence[scf.ForOp], ranges: Ranges) -> bool:
    """Whether a truth value surely holds while all of some loops are in their first iteration."""
    owner = value.owner
    if isinstance(owner, arith.AndIOp):
        return holds_first(owner.lhs, loops, ranges) and holds_first(owner.rhs, loops, ranges)
    if isinstance(owner, arith.OrIOp):
        return holds_first(owner.lhs, loops, ranges) or holds_first(owner.rhs, loops, ranges)
    if not isinstance(owner, arith.CmpiOp):
        return ranges.constant(value) not in (None, 0)
    sides = _plain(owner.lhs), _plain(owner.rhs)
    if owner.predicate.value.data == 0 and any(  # eq
            set(sides) == {loop.body.block.args[0], _plain(loop.lb)} for loop in loops):
        return True
    first = Ranges()
    for loop in loops:
        start = ranges.constant(loop.lb)
        if start is not None:
            first.assume(loop.body.block.args[0], Interval.at(start))
    left, right = first.constant(sides[0]), first.constant(sides[1])
    compare = _COMPARE.get(owner.predicate.value.data)
    return left is not None and right is not None and compare is not None and compare(left, right)


_COMPARE: Mapping[int, Callable[[int, int], bool]] = {
    0: operator.eq, 1: operator.ne, 2: operator.lt, 3: operator.le, 4: operator.gt, 5: operator.ge}
"""Predicates of ``arith.cmpi`` on signed integers, which those of a kernel's loops are."""


def _plain(value: SSAValue) -> SSAValue:
    """The integer behind conversions between integer types."""
    while isinstance(value.owner, (arith.IndexCastOp, arith.ExtSIOp, arith.TruncIOp)):
        value = value.owner.operands[0]
    return value
