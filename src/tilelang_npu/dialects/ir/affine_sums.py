"""Integer values of the IR as linear forms: a constant plus a sum of other SSA values times constant factors."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from tilelang_npu.dialects.ir.constants import constant_value
from tilelang_npu.linear import Linear


def affine(value: SSAValue | int, number: Callable[[SSAValue], int | None] = constant_value) -> Linear[SSAValue]:
    """Returns the linear form of an index.

    The function looks through additions, subtractions, multiplications by a constant, exact divisions by a constant, and index
    casts. Any other value is a term of the form with the factor 1.

    Args:
        value: the index.
        number: returns the integer that replaces an SSA value in the form, or None to keep the value. By default integer
            constants are replaced.
    """
    if isinstance(value, int):
        return Linear(value)
    known = number(value)
    if known is not None:
        return Linear(known)
    owner = value.owner
    if isinstance(owner, arith.IndexCastOp) and not _may_wrap(owner.input):
        return affine(owner.input, number)
    if isinstance(owner, arith.AddiOp):
        return affine(owner.lhs, number) + affine(owner.rhs, number)
    if isinstance(owner, arith.SubiOp):
        return affine(owner.lhs, number) - affine(owner.rhs, number)
    if isinstance(owner, arith.MuliOp):
        one, other = affine(owner.lhs, number), affine(owner.rhs, number)
        if other.known:
            return one * other.constant
        if one.known:
            return other * one.constant
    # Unsigned division is the same as signed division, because an index is not negative.
    if isinstance(owner, (arith.DivUIOp, arith.DivSIOp, arith.FloorDivSIOp)):
        parts = _divided(affine(owner.lhs, number), affine(owner.rhs, number))
        if parts is not None:
            return parts
    return Linear.of(value)


def _may_wrap(value: SSAValue) -> bool:
    """Whether an integer is computed in a type of fewer than 32 bits, in which sums, products and casts may wrap around."""
    kind = value.type
    return isinstance(kind, IntegerType) and kind.width.data < 32 and isinstance(
        value.owner, (arith.IndexCastOp, arith.TruncIOp, arith.AddiOp, arith.SubiOp, arith.MuliOp))


def _divided(value: Linear[SSAValue], by: Linear[SSAValue]) -> Linear[SSAValue] | None:
    """A linear form divided by a constant; None where the division of a coefficient may have a remainder."""
    if not by.known or by.constant <= 0 or any(part % by.constant for part in (value.constant, *value.terms.values())):
        return None
    made = Linear[SSAValue](value.constant // by.constant)
    for atom, factor in value.terms.items():
        made += factor // by.constant * Linear.of(atom)
    return made
