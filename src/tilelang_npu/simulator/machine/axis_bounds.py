"""Checks at run time that a slice lies inside its axis. Generated code calls them where bounds are not known earlier."""

from __future__ import annotations


class AxisBoundsError(Exception):
    """An op takes elements that an axis does not have. The message gives the slice, the axis and its extent."""


def check_slice(start: int, reach: int, extent: int, axis: str, name: str) -> int:
    """Returns 0 if an axis has the elements ``start`` to ``reach - 1``; generated code adds the 0 to an offset.

    Args:
        start, reach: the first element, and one past the last.
        extent: elements of the axis.
        axis: the axis in messages: ``axis 0``, or ``the rows`` or ``the columns`` of fractals.
        name: the buffer.

    Raises:
        AxisBoundsError: the slice begins before the axis or ends after it.
    """
    if start >= 0 and reach <= extent:
        return 0
    if start >= 1 << 63:  # a negative number that an unsigned division has made large
        start -= 1 << 64
    what = f"starts at {start} on" if start < 0 else f"takes {start}..{reach - 1} of"
    raise AxisBoundsError(f"{what} {axis} of {name}, which has 0..{extent - 1}")


def check_product_size(name: str, size: int, first: int, second: int, what: str) -> None:
    """Checks one size of a matrix product against both operands that have it.

    Args:
        name: ``m``, ``k`` or ``n``.
        size: the size.
        first, second: the most that each of the operands has.
        what: the unit in messages: ``rows``, ``columns`` or ``depths``.

    Raises:
        AxisBoundsError: an operand has fewer.
    """
    if size > min(first, second):
        raise AxisBoundsError(f"multiplies {name} = {size}, but its operands have {what} {first} and {second}")
