"""Linear forms of integers, with which the front end proves that two expressions are equal or differ by a constant.

A linear form is a constant plus a sum of multiples of atoms. An atom is an integer that is not a sum or multiple of others (a
loop variable, a quotient, a load). Atoms are numbered by their structure, so that an expression that is written twice has the
same form. The size ``stop - start`` of a slice is constant if the difference of the two forms is constant.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from tilelang_npu.linear import TRUTH, Interval, Linear
from tilelang_npu.ops import DType


@dataclass
class Atoms:
    """The table of the atoms of one trace: it maps the structure of each atom to a number."""

    numbers: dict[Hashable, int] = field(default_factory=dict)

    def of(self, structure: Hashable) -> Linear[int]:
        """Returns the linear form that consists of the atom with the given structure."""
        return Linear.of(self.numbers.setdefault(structure, len(self.numbers)))

    def fresh(self) -> Linear[int]:
        """Returns the linear form of a new atom, which is equal to no other atom."""
        return self.of(("fresh", len(self.numbers)))


def bounds_of(dtype: DType) -> Interval:
    """Returns the interval of the values of an integer type or ``bool``."""
    return TRUTH if dtype.is_bool else Interval.of_bits(dtype.bits, signed=dtype.is_signed)


def wrap(value: int, dtype: DType) -> int:
    """Returns ``value`` wrapped around to the range of an integer type; for ``bool``, whether it differs from 0."""
    return bool(value) if dtype.is_bool else bounds_of(dtype).wrapped(value)
