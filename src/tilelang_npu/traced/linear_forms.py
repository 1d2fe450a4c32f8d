"""What the front end can prove about integers: linear forms, and the bounds of types.

A linear form is a sum of multiples of atoms. An atom is a value that is not linear (a loop variable, a quotient, a load); atoms
are numbered by their structure, so that an expression that is written twice has one form. ``stop - start`` of a slice is a
constant if the difference of the two forms is.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from tilelang_npu.linear import TRUTH, Interval, Linear
from tilelang_npu.ops import DType


@dataclass
class Atoms:
    """The numbers of atoms by their structure; one table for each trace."""

    numbers: dict[Hashable, int] = field(default_factory=dict)

    def of(self, structure: Hashable) -> Linear[int]:
        """The atom with that structure."""
        return Linear.of(self.numbers.setdefault(structure, len(self.numbers)))

    def fresh(self) -> Linear[int]:
        """An atom that is not equal to any other."""
        return self.of(("fresh", len(self.numbers)))


def bounds_of(dtype: DType) -> Interval:
    """The values of an integer type."""
    return TRUTH if dtype.is_bool else Interval.of_bits(dtype.bits, signed=dtype.is_signed)


def wrap(value: int, dtype: DType) -> int:
    """``value`` modulo the type's range."""
    return bool(value) if dtype.is_bool else bounds_of(dtype).wrapped(value)
