"""Integers that are partly known: their linear forms and their bounds.

A :class:`Linear` is a constant plus integer multiples of atoms. The code that reads an expression decides what an atom is: a
number that a table assigns to a structure, a value of the IR, a name in generated code. An :class:`Interval` is all integers
between two ends, either of which may be infinite. The bounds of a sum follow from those of its atoms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self

Bound = float
"""An integer of any size, or an infinity."""


def _sum(x: Bound, y: Bound) -> Bound:
    if type(x) is float:  # an infinity: Python cannot add a large integer to it
        return x
    return y if type(y) is float else x + y


def _product(x: Bound, y: Bound) -> Bound:
    if not x or not y:
        return 0
    if type(x) is float or type(y) is float:
        return inf if (x > 0) == (y > 0) else -inf
    return x * y


def _floor(x: Bound, y: Bound) -> Bound:
    """``x // y``, or its limit where one of them is infinite."""
    if type(x) is float:
        return x if y > 0 else -x
    if type(y) is float:
        return -1 if x and (x > 0) != (y > 0) else 0
    return x // y


def _ceiling(x: Bound, y: Bound) -> Bound:
    return -_floor(-x, y)


def _truncated(x: Bound, y: Bound) -> Bound:
    return _floor(x, y) if (x >= 0) == (y > 0) else _ceiling(x, y)


def _shifted(x: Bound, y: Bound) -> Bound:
    """``x >> y``, or its limit where one of them is infinite."""
    if type(x) is float:
        return x
    return int(x) >> int(y) if y <= int(x).bit_length() else -1 if x < 0 else 0


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers from ``low`` to ``high``, both included; infinite where there is no known bound.

    The operators give bounds of the results for any two members. Undefined results, as of a division by zero, do not count. An
    interval whose ``low`` is above its ``high`` is empty.
    """

    low: Bound = -inf
    high: Bound = inf

    @classmethod
    def at(cls, value: int) -> Interval:
        """The interval of one value."""
        return cls(value, value)

    @classmethod
    def of_bits(cls, bits: int, *, signed: bool) -> Interval:
        """The integers of so many bits."""
        half = 1 << (bits - 1)
        return cls(-half, half - 1) if signed else cls(0, 2 * half - 1)

    @property
    def constant(self) -> int | None:
        """The only member; None where there are several."""
        return int(self.low) if self.low == self.high and type(self.low) is not float else None

    @property
    def numbers(self) -> range:
        """The members of an interval with finite bounds."""
        return range(int(self.low), int(self.high) + 1)

    @property
    def closed(self) -> bool:
        """Whether both bounds are finite."""
        return type(self.low) is not float and type(self.high) is not float

    def within(self, other: Interval) -> bool:
        """Whether all members are members of the other interval."""
        return other.low <= self.low and self.high <= other.high

    def holds(self, sign: str) -> bool | None:
        """Whether ``member sign 0`` holds for all members (True), for none (False) or for some (None). The sign is one of
        ``== != < <= > >=``.
        """
        if sign in (">", ">="):
            return (-self).holds(sign.replace(">", "<"))
        if sign == "!=":
            equal = self.holds("==")
            return None if equal is None else not equal
        if sign == "==":
            return True if self.low == 0 == self.high else False if self.low > 0 or self.high < 0 else None
        below = 0 if sign == "<=" else -1
        return True if self.high <= below else False if self.low > below else None

    def fitted(self, other: Interval) -> Interval:
        """The bounds of a member that wraps around into the other interval."""
        return self if self.within(other) else other

    def wrapped(self, value: int) -> int:
        """The member that differs from ``value`` by a multiple of the length."""
        low = int(self.low)
        return (value - low) % (int(self.high) - low + 1) + low

    def join(self, other: Interval) -> Interval:
        """The bounds of a member of either."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def meet(self, other: Interval) -> Interval:
        """The bounds of a member of both."""
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def least(self, other: Interval) -> Interval:
        """The bounds of ``min``."""
        return Interval(min(self.low, other.low), min(self.high, other.high))

    def greatest(self, other: Interval) -> Interval:
        """The bounds of ``max``."""
        return Interval(max(self.low, other.low), max(self.high, other.high))

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __add__(self, other: Interval) -> Interval:
        return Interval(_sum(self.low, other.low), _sum(self.high, other.high))

    def __sub__(self, other: Interval) -> Interval:
        return Interval(_sum(self.low, -other.high), _sum(self.high, -other.low))

    def __mul__(self, other: Interval) -> Interval:
        return self._corners(other, _product)

    def __floordiv__(self, other: Interval) -> Interval:
        return self._divided(other, _floor)

    def ceildiv(self, other: Interval) -> Interval:
        """The bounds of a division that rounds up."""
        return self._divided(other, _ceiling)

    def truncdiv(self, other: Interval) -> Interval:
        """The bounds of a division that rounds toward zero."""
        return self._divided(other, _truncated)

    def __mod__(self, other: Interval) -> Interval:
        """The bounds of the remainder of a division that rounds down; it has the divisor's sign."""
        if other.low > 0:
            if self.low >= 0:
                return self if self.high < other.low else Interval(0, min(self.high, other.high - 1))
            return Interval(0, other.high - 1)
        if other.high < 0:
            return -(-self % -other)
        parts = [self % part for part in other._signed() if part.low <= part.high]
        return parts[0].join(parts[-1]) if parts else ANY

    def remainder(self, other: Interval) -> Interval:
        """The bounds of the remainder of a division that rounds toward zero; it has the dividend's sign."""
        largest = max(-other.low, other.high) - 1
        if largest < 0:
            return ANY
        smallest = max(other.low, -other.high, 1)
        if -smallest < self.low and self.high < smallest:
            return self
        return Interval(max(min(self.low, 0), -largest), min(max(self.high, 0), largest))

    def __and__(self, other: Interval) -> Interval:
        """The bounds of the bitwise and."""
        highs = [part.high for part in (self, other) if part.low >= 0]
        return Interval(0, min(highs)) if highs else ANY

    def __rshift__(self, other: Interval) -> Interval:
        places = other.meet(NATURAL)
        return self._corners(places, _shifted) if places.low <= places.high else ANY

    def _corners(self, other: Interval, combine: Callable[[Bound, Bound], Bound]) -> Interval:
        a, b, c, d = self.low, self.high, other.low, other.high
        ends = (combine(a, c), combine(a, d), combine(b, c), combine(b, d))
        return Interval(min(ends), max(ends))

    def _divided(self, other: Interval, divide: Callable[[Bound, Bound], Bound]) -> Interval:
        if other.low > 0 or other.high < 0:
            return self._corners(other, divide)
        parts = [self._corners(part, divide) for part in other._signed() if part.low <= part.high]
        return parts[0].join(parts[-1]) if parts else ANY

    def _signed(self) -> tuple[Interval, Interval]:
        """The members below zero and those above."""
        return Interval(self.low, min(self.high, -1)), Interval(max(self.low, 1), self.high)


ANY = Interval()
NATURAL = Interval(0)
TRUTH = Interval(0, 1)

Atom = TypeVar("Atom", bound=Hashable)


class Linear(Generic[Atom]):
    """``constant + sum(factor * atom)``; immutable, and equal to another one with the same value for all values of the atoms.

    Attributes:
        constant: the constant.
        terms: the factor of each atom, none of them 0, in the order in which the atoms were added.
    """

    __slots__ = ("_hash", "constant", "terms")

    def __init__(self, constant: int, terms: Mapping[Atom, int] | None = None) -> None:
        self.constant: int = constant
        self.terms: Mapping[Atom, int] = terms if terms and 0 not in terms.values() else {
            atom: factor for atom, factor in terms.items() if factor} if terms else {}

    @classmethod
    def of(cls, atom: Atom) -> Self:
        """An atom."""
        return cls(0, {atom: 1})

    @property
    def known(self) -> bool:
        """Whether it is a constant."""
        return not self.terms

    def __add__(self, other: Self | int) -> Self:
        if isinstance(other, int):
            return type(self)(self.constant + other, self.terms)
        if not other.terms:
            return type(self)(self.constant + other.constant, self.terms)
        terms = dict(self.terms)
        for atom, factor in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor
        return type(self)(self.constant + other.constant, terms)

    __radd__ = __add__

    def __neg__(self) -> Self:
        return self * -1

    def __sub__(self, other: Self | int) -> Self:
        return self + -other

    def __mul__(self, factor: int) -> Self:
        if factor == 1:
            return self
        return type(self)(self.constant * factor, {atom: factor * times for atom, times in self.terms.items()})

    __rmul__ = __mul__

    def quotient(self, divisor: int) -> Self | None:
        """``self // divisor``, where it is a sum of the same atoms; else None."""
        if any(factor % divisor for factor in self.terms.values()):
            return None
        return type(self)(self.constant // divisor, {atom: factor // divisor for atom, factor in self.terms.items()})

    def remainder(self, divisor: int) -> int | None:
        """``self % divisor``, where it does not depend on the atoms; else None."""
        return None if any(factor % divisor for factor in self.terms.values()) else self.constant % divisor

    @property
    def single(self) -> tuple[Atom, int] | None:
        """The only atom and its factor; None where there are none or several."""
        return next(iter(self.terms.items())) if len(self.terms) == 1 else None

    def factor(self, atom: Atom) -> int:
        """The factor of an atom."""
        return self.terms.get(atom, 0)

    def substitute(self, atom: Atom, by: Self | int) -> Self:
        """The sum with ``by`` in place of an atom."""
        rest = type(self)(self.constant, {other: factor for other, factor in self.terms.items() if other != atom})
        return rest + by * self.factor(atom)

    def bounds(self, of: Callable[[Atom], Interval]) -> Interval:
        """Its bounds, from those of its atoms."""
        least: Bound = self.constant
        most: Bound = self.constant
        for atom, factor in self.terms.items():
            known = of(atom)
            one, other = (known.low, known.high) if factor > 0 else (known.high, known.low)
            least, most = _sum(least, _product(factor, one)), _sum(most, _product(factor, other))
        return Interval(least, most)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and self.constant == other.constant and self.terms == other.terms

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash: int = hash((self.constant, frozenset(self.terms.items())))
            return self._hash

    def __repr__(self) -> str:
        return " + ".join([*(f"{factor} * {atom}" for atom, factor in self.terms.items()), str(self.constant)])
