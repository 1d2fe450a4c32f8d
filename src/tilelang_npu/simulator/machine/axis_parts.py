"""Whether an axis has what is taken of it, where that is known when code runs."""

from __future__ import annotations


class LeavesAxisError(Exception):
    """A part of an axis that is not there: what an op takes, of what, and what the axis has."""


def taken(start: int, reach: int, extent: int, axis: str, name: str) -> int:
    """0 where an axis has what is taken of it.

    Args:
        start, reach: the first element that is taken, and one past the last.
        extent: elements of the axis.
        axis: what it is called: ``axis 0``, or ``rows`` or ``columns`` of fractals.
        name: the buffer.

    Raises:
        LeavesAxisError: it begins in front of the axis, or ends behind it.
    """
    if start >= 0 and reach <= extent:
        return 0
    if start >= 1 << 63:  # a negative number, divided as an unsigned one
        start -= 1 << 64
    what = f"starts at {start} on" if start < 0 else f"takes {start}..{reach - 1} of"
    raise LeavesAxisError(f"{what} {axis} of {name}, which has 0..{extent - 1}")


def fits(name: str, size: int, first: int, second: int, what: str) -> None:
    """Check one size of a product against the two operands that have it.

    Args:
        name: ``m``, ``k`` or ``n``.
        size: the size.
        first, second: the most that either operand has.
        what: what it is the number of.

    Raises:
        LeavesAxisError: an operand has fewer.
    """
    if size > min(first, second):
        raise LeavesAxisError(f"multiplies {name} = {size}, but its operands have {what} {first} and {second}")
