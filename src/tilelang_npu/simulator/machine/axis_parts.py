"""Whether an axis has what is taken of it, where that is known when code runs."""

from __future__ import annotations


class LeavesAxisError(Exception):
    """A part of an axis that is not there: what an op takes, of what, and what the axis has."""


def taken(start: int, reach: int, extent: int, axis: int, name: str) -> int:
    """0 where an axis has what is taken of it.

    Raises:
        LeavesAxisError: it begins in front of the axis, or ends behind it.
    """
    if start >= 0 and reach <= extent:
        return 0
    what = f"starts at {start} on" if start < 0 else f"takes {start}..{reach - 1} of"
    raise LeavesAxisError(f"{what} axis {axis} of {name}, which has 0..{extent - 1}")
