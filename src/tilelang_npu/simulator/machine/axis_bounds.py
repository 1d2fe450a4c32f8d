"""Checks that a slice lies inside its axis. Generated code calls these checks at run time if compilation cannot decide them."""

from __future__ import annotations

BEFORE = ("copy only the elements that exist, to their place in the tile (docs/from-numpy.md, Neighbours); a start that is "
          "clamped to 0 moves the whole tile")
"""The advice for a slice that starts before its axis."""


class AxisBoundsError(Exception):
    """Raised by generated code when an op accesses elements before the start or after the end of an axis.

    The message names the slice, the axis and the elements that the axis has.

    Attributes:
        help: the advice of the error that the user sees.
    """

    def __init__(self, message: str,
                 help: str = "clamp the start of the slice, or shorten the slice to the axis",  # noqa: A002  (as TileError's)
                 ) -> None:
        super().__init__(message)
        self.help = help


def check_slice(start: int, reach: int, extent: int, axis: str, name: str) -> int:
    """Checks that an axis has the elements ``start`` to ``reach - 1``, and returns 0, which generated code adds to an offset.

    Args:
        start: the first element of the slice.
        reach: the index after the last element of the slice.
        extent: the number of elements of the axis.
        axis: the axis as messages name it: ``axis 0``, or ``the rows`` or ``the columns`` of a matrix in fractals.
        name: the buffer as messages name it.

    Raises:
        AxisBoundsError: the slice begins before the axis or ends after it.
    """
    if start >= 0 and reach <= extent:
        return 0
    if start >= 1 << 63:  # a negative number that an unsigned division has made large
        start -= 1 << 64
    what = f"starts at {start} on" if start < 0 else f"takes {start}..{reach - 1} of"
    message = f"{what} {axis} of {name}, which has 0..{extent - 1}"
    raise AxisBoundsError(message, BEFORE) if start < 0 else AxisBoundsError(message)


def check_read_start(start: int, reach: int, extent: int, axis: str, name: str) -> int:
    """Checks that a start which the kernel has read from memory lies inside its axis; returns 0.

    Args:
        start: the start, without loop variables, block indices and arguments that are added to it.
        reach: the index after the last element that must exist: ``start + 1``, or ``start`` if a tile may begin at the end.
        extent: the number of elements of the axis.
        axis: the axis as messages name it.
        name: the tensor as messages name it.

    Raises:
        AxisBoundsError: the start lies outside of the axis.
    """
    if start >= 0 and reach <= extent:
        return 0
    raise AxisBoundsError(f"starts at {start} on {axis} of {name}, which has 0..{extent - 1}",
                          "check the number that was read; if it may lie outside, put the statement under an if")


def check_product_size(name: str, size: int, first: int, second: int, what: str) -> None:
    """Checks that one size of a matrix product does not exceed the extents of the two buffers that have an axis of this size.

    Args:
        name: ``m``, ``k`` or ``n``.
        size: the size that the op multiplies.
        first, second: the extents of the two buffers along the axis, in elements.
        what: the unit of the extents in messages: ``rows``, ``columns`` or ``elements along k``.

    Raises:
        AxisBoundsError: an extent is smaller than the size.
    """
    if size > min(first, second):
        raise AxisBoundsError(f"multiplies {name} = {size}, but its operands have {first} and {second} {what}")
