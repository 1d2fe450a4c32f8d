"""What the front end can prove about sizes and signs: sums of integers by what they are made of, and the bounds of types.

What is not linear (a loop variable, a quotient, a load) is an atom, numbered by its structure, so the same expression written
twice is the same sum. ``stop - start`` of a slice is a constant where the two sums differ by one.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from tilelang_npu.linear import TRUTH, Interval, Linear
from tilelang_npu.ops import DType


@dataclass
class Atoms:
    """Numbers of atoms by structure; one table per trace."""

    numbers: dict[Hashable, int] = field(default_factory=dict)

    def of(self, structure: Hashable) -> Linear[int]:
        """The atom of that structure."""
        return Linear.of(self.numbers.setdefault(structure, len(self.numbers)))

    def fresh(self) -> Linear[int]:
        """An atom that equals no other."""
        return self.of(("fresh", len(self.numbers)))


def bounds_of(dtype: DType) -> Interval:
    """What an integer type holds."""
    return TRUTH if dtype.is_bool else Interval.of_bits(dtype.bits, signed=dtype.is_signed)


def wrap(value: int, dtype: DType) -> int:
    """``value`` modulo the type's range."""
    return bool(value) if dtype.is_bool else bounds_of(dtype).wrapped(value)
