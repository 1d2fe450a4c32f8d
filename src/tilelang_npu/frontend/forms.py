"""Linear forms and intervals of integer expressions: what the front end can prove about sizes and signs.

A form is a constant plus integer multiples of atoms; an atom stands for anything that is not linear (a loop variable, a
quotient, a load) and is numbered by its structure, so the same expression written twice has the same form. ``stop - start`` of
a slice is a constant where the two forms differ by one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from tilelang_npu.ops import DType

Interval = tuple[int | None, int | None]
"""Smallest and largest value; None where nothing is known."""


class Form:
    """``constant + sum(factor * atom)``; immutable."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant: int, terms: Mapping[int, int] | None = None) -> None:
        self.constant = constant
        self.terms = {atom: factor for atom, factor in terms.items() if factor} if terms else {}

    def plus(self, other: Form, factor: int = 1) -> Form:
        """``self + factor * other``."""
        terms = dict(self.terms)
        for atom, multiple in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor * multiple
        return Form(self.constant + factor * other.constant, terms)

    def times(self, factor: int) -> Form:
        """``factor * self``."""
        return Form(self.constant * factor, {atom: factor * multiple for atom, multiple in self.terms.items()})

    def divisible(self, divisor: int) -> bool:
        """Whether every value of the form is a multiple of ``divisor``."""
        return self.constant % divisor == 0 and all(factor % divisor == 0 for factor in self.terms.values())

    @property
    def key(self) -> Hashable:
        """Equal exactly for equal forms."""
        return (self.constant, tuple(sorted(self.terms.items())))


@dataclass
class Atoms:
    """Numbers of atoms by structure; one table per trace."""

    numbers: dict[Hashable, int] = field(default_factory=dict)

    def of(self, structure: Hashable) -> Form:
        """The form of an atom of that structure."""
        return Form(0, {self.numbers.setdefault(structure, len(self.numbers)): 1})

    def fresh(self) -> Form:
        """The form of an atom that equals no other."""
        return self.of(("fresh", len(self.numbers)))


def bounds_of(dtype: DType) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    if dtype.is_bool:
        return 0, 1
    if dtype.is_signed:
        return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    return 0, (1 << dtype.bits) - 1


def wrap(value: int, dtype: DType) -> int:
    """``value`` modulo the type's range."""
    low, _ = bounds_of(dtype)
    return bool(value) if dtype.is_bool else (value - low) % (1 << dtype.bits) + low


def interval(operation: str, left: Interval, right: Interval) -> Interval:
    """Interval of ``left operation right`` over the integers."""
    (a, b), (c, d) = left, right
    if operation == "add":
        return _sum(a, c), _sum(b, d)
    if operation == "sub":
        return _sum(a, _negative(d)), _sum(b, _negative(c))
    if operation == "mul":
        return _product(left, right)
    if operation == "floordiv":
        return _quotient(left, right)
    if operation == "mod":
        return _remainder(left, right)
    if operation == "min":
        known = [value for value in (b, d) if value is not None]
        return (None if a is None or c is None else min(a, c)), (min(known) if known else None)
    if operation == "max":
        known = [value for value in (a, c) if value is not None]
        return (max(known) if known else None), (None if b is None or d is None else max(b, d))
    if operation == "and" and c is not None and c >= 0:
        return 0, d
    if operation == "shr" and a is not None and a >= 0:
        return 0, b
    return None, None


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def _negative(value: int | None) -> int | None:
    return None if value is None else -value


def _product(left: Interval, right: Interval) -> Interval:
    (a, b), (c, d) = left, right
    if a is not None and b is not None and c is not None and d is not None:
        corners = (a * c, a * d, b * c, b * d)
        return min(corners), max(corners)
    if a is not None and c is not None and a >= 0 and c >= 0:
        return a * c, None
    return None, None


def _quotient(left: Interval, right: Interval) -> Interval:
    (a, b), (c, d) = left, right
    if c is not None and c == d and c > 0:
        return (None if a is None else a // c), (None if b is None else b // c)
    if a is not None and c is not None and a >= 0 and c >= 0:
        return 0, b
    return None, None


def _remainder(left: Interval, right: Interval) -> Interval:
    (a, b), (c, d) = left, right
    if c is None or c < 0:
        return None, None
    high = None if d is None else d - 1
    if a is not None and a >= 0 and b is not None:
        high = b if high is None else min(b, high)
    return 0, high
