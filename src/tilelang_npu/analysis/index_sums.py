"""The index expressions of an access in a ``T.Parallel`` as affine functions of the loop variables.

An access in the body of a ``T.Parallel`` has an index expression for each axis of its buffer. ``x[2 * i + j + 3, n]`` has the
expressions ``2 * i + j + 3`` and ``n``. Each is a sum of multiples of the loop variables, here ``i`` and ``j``, and an offset
that is the same in all iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from tilelang_npu.linear import Linear


@dataclass(frozen=True)
class Index:
    """An index expression that is one loop variable plus an offset, or an offset alone.

    Attributes:
        axis: the axis of the iteration space that the loop variable counts; None if there is no loop variable.
        offset: a loop-invariant value, or an integer.
    """

    axis: int | None
    offset: SSAValue | int

    @property
    def sum(self) -> IndexSum:
        """This index expression as an ``IndexSum``."""
        return IndexSum(() if self.axis is None else ((self.axis, 1),), self.offset)


@dataclass(frozen=True)
class IndexSum:
    """An index expression that is a sum of multiples of loop variables and an offset.

    Attributes:
        terms: for each loop variable in the sum, the axis of the iteration space that the variable counts and the variable's
            factor; largest factors first.
        offset: a loop-invariant value, or an integer.
        rest: the offset as an affine expression of SSA values; None where this is not known.
    """

    terms: tuple[tuple[int, int], ...]
    offset: SSAValue | int
    rest: Linear[SSAValue] | None = field(default=None, compare=False)

    def bounds(self, extents: Sequence[int]) -> tuple[int, int]:
        """Returns the smallest and the largest value that the index expression has in an iteration space.

        An offset that is not a compile-time integer is left out, as if it were 0.

        Args:
            extents: the sizes of the iteration space, one per loop variable.
        """
        start = self.offset if isinstance(self.offset, int) else 0
        ends = [(extents[axis] - 1) * factor for axis, factor in self.terms]
        return start + sum(min(0, end) for end in ends), start + sum(max(0, end) for end in ends)

    @property
    def index(self) -> Index | None:
        """This sum as an ``Index``; None if it has several loop variables, or one with another factor than 1."""
        if not self.terms:
            return Index(None, self.offset)
        return Index(self.terms[0][0], self.offset) if len(self.terms) == 1 and self.terms[0][1] == 1 else None


def region_indices(sums: Sequence[IndexSum | None]) -> tuple[Index, ...] | None:
    """Returns the indices of an access, if the elements that all iterations access form a rectangular region of the buffer.

    They do if each index is an offset or one loop variable plus an offset, and the variables occur in the order of the loop's
    axes, each at most once. None for any other access.

    Args:
        sums: the index expressions of the access, one per axis of the buffer; None for an index that is not such a sum.
    """
    found = tuple(one.index if one is not None else None for one in sums)
    order = [index.axis for index in found if index is not None and index.axis is not None]
    return tuple(index for index in found if index is not None) if order == sorted(set(order)) and None not in found else None


__all__ = ["Index", "IndexSum", "region_indices"]
