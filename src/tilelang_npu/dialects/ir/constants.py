"""Finds SSA values that are known at compile time: integer constants, and conditions that always hold."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, SSAValue

_EQUAL = 0  # the predicate of arith.cmpi for equality


def constant_value(value: SSAValue) -> int | None:
    """Returns the integer of a value that an ``arith.constant`` defines; None for any other value."""
    held = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return held.value.data if isinstance(held, IntegerAttr) else None


def is_known_true(value: SSAValue) -> bool:
    """Whether an i1 value is known to be true at compile time.

    That is so in three cases: the value is the constant true; it compares two equal constants for equality; or it compares, for
    equality, the induction variable of a loop with one iteration and the loop's lower bound. Kernels test for the first
    iteration of a loop by the last of these.
    """
    comparison = value.owner
    if not isinstance(comparison, arith.CmpiOp):
        return bool(constant_value(value))
    first = known if (known := constant_value(comparison.lhs)) is not None else _single_iteration_value(comparison.lhs)
    return first is not None and first == constant_value(comparison.rhs) and comparison.predicate.value.data == _EQUAL


def _single_iteration_value(value: SSAValue) -> int | None:
    """The value of an induction variable whose loop has constant bounds and one iteration; None for any other value."""
    block = value.owner
    loop = block.parent_op() if isinstance(block, Block) else None
    if not isinstance(loop, scf.ForOp) or block is not loop.body.block or value is not block.args[0]:
        return None
    start, end, step = (constant_value(bound) for bound in (loop.lb, loop.ub, loop.step))
    once = start is not None and end is not None and step is not None and start < end <= start + step
    return start if once else None
