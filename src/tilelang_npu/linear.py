"""Linear integer expressions and integer intervals, for range analysis.

A :class:`Linear` is a constant plus integer multiples of unknowns, which are called atoms. Any hashable object can be an atom:
the analysis that builds the expression chooses, for example, an SSA value, a name in generated code, or a number that
represents a subexpression. An :class:`Interval` is the set of all integers between two ends, either of which can be infinite.
:meth:`Linear.bounds` computes an interval for an expression from the intervals of its atoms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self

Bound = float
"""The type of an end of an interval: an ``int`` of any size, or a ``float`` that is plus or minus infinity."""


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
    """Returns ``x // y``; if an operand is infinite, the limit of the quotient."""
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
    """Returns ``x >> y``; if an operand is infinite, the limit of the result."""
    if type(x) is float:
        return x
    return int(x) >> int(y) if y <= int(x).bit_length() else -1 if x < 0 else 0


@dataclass(frozen=True, slots=True)
class Interval:
    """The set of all integers from ``low`` to ``high``, both included. An interval with ``low > high`` is empty.

    An arithmetic operator on two intervals returns an interval that contains the operator's result for every pair of a member
    of the first and a member of the second. Pairs without a defined result, such as divisions by zero, are ignored.

    Attributes:
        low: the smallest member; ``-inf`` if there is no known lower bound.
        high: the largest member; ``inf`` if there is no known upper bound.
    """

    low: Bound = -inf
    high: Bound = inf

    @classmethod
    def at(cls, value: int) -> Interval:
        """Returns the interval whose only member is ``value``."""
        return cls(value, value)

    @classmethod
    def of_bits(cls, bits: int, *, signed: bool) -> Interval:
        """Returns the interval of all integers of a type with ``bits`` bits, in two's complement if ``signed``."""
        half = 1 << (bits - 1)
        return cls(-half, half - 1) if signed else cls(0, 2 * half - 1)

    @property
    def constant(self) -> int | None:
        """The only member of the interval; None if the interval has several members or none."""
        return int(self.low) if self.low == self.high and type(self.low) is not float else None

    @property
    def numbers(self) -> range:
        """The members of the interval as a ``range``; both ends must be finite, see :attr:`closed`."""
        return range(int(self.low), int(self.high) + 1)

    @property
    def closed(self) -> bool:
        """Whether both ends of the interval are finite."""
        return type(self.low) is not float and type(self.high) is not float

    def within(self, other: Interval) -> bool:
        """Whether the interval is a subset of ``other``."""
        return other.low <= self.low and self.high <= other.high

    def holds(self, sign: str) -> bool | None:
        """Compares all members with zero.

        Args:
            sign: the comparison: one of ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``.

        Returns:
            True if ``member sign 0`` holds for all members, False if it holds for none, None if it holds for some of them only.
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
        """Returns an interval that contains every member after wrap-around into ``other``, the interval of an integer type.

        This is the interval itself if it is a subset of ``other``, and otherwise all of ``other``.
        """
        return self if self.within(other) else other

    def wrapped(self, value: int) -> int:
        """Returns ``value`` wrapped around into this interval, as an integer type with this range wraps around on overflow.

        The result is the member that differs from ``value`` by a multiple of the number of members; both ends must be finite.
        """
        low = int(self.low)
        return (value - low) % (int(self.high) - low + 1) + low

    def join(self, other: Interval) -> Interval:
        """Returns the smallest interval that contains both intervals."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def meet(self, other: Interval) -> Interval:
        """Returns the intersection of both intervals; it is empty (``low > high``) if they have no common member."""
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def least(self, other: Interval) -> Interval:
        """Returns the interval of ``min(a, b)`` for members ``a`` of this and ``b`` of the other interval."""
        return Interval(min(self.low, other.low), min(self.high, other.high))

    def greatest(self, other: Interval) -> Interval:
        """Returns the interval of ``max(a, b)`` for members ``a`` of this and ``b`` of the other interval."""
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
        """Returns an interval that contains ``a / b`` rounded up, for members ``a`` of this and ``b`` of the other interval."""
        return self._divided(other, _ceiling)

    def truncdiv(self, other: Interval) -> Interval:
        """Returns an interval that contains ``a / b`` rounded toward zero, for ``a`` of this, ``b`` of the other interval."""
        return self._divided(other, _truncated)

    def __mod__(self, other: Interval) -> Interval:
        """Returns an interval that contains the remainder of a division that rounds down, which has the divisor's sign."""
        if other.low > 0:
            if self.low >= 0:
                return self if self.high < other.low else Interval(0, min(self.high, other.high - 1))
            return Interval(0, other.high - 1)
        if other.high < 0:
            return -(-self % -other)
        parts = [self % part for part in other._signed() if part.low <= part.high]
        return parts[0].join(parts[-1]) if parts else ANY

    def remainder(self, other: Interval) -> Interval:
        """Returns an interval that contains the remainder of a division that rounds toward zero, which has the dividend's sign.
        """
        largest = max(-other.low, other.high) - 1
        if largest < 0:
            return ANY
        smallest = max(other.low, -other.high, 1)
        if -smallest < self.low and self.high < smallest:
            return self
        return Interval(max(min(self.low, 0), -largest), min(max(self.high, 0), largest))

    def __and__(self, other: Interval) -> Interval:
        """Returns an interval that contains the bitwise and of a member of each interval."""
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
        """Returns the interval of the negative members, and the interval of the positive members."""
        return Interval(self.low, min(self.high, -1)), Interval(max(self.low, 1), self.high)


ANY = Interval()
"""The interval of all integers."""
NATURAL = Interval(0)
"""The interval of the integers from 0 on."""
TRUTH = Interval(0, 1)
"""The interval of a truth value: 0 or 1."""

Atom = TypeVar("Atom", bound=Hashable)


class Linear(Generic[Atom]):
    """A linear integer expression: ``constant`` plus the sum of ``factor * atom`` over its atoms.

    An atom is a hashable object that represents an unknown integer. A linear expression is immutable. Two expressions are equal
    if they have the same constant and the same factors, so that they have the same value for all values of the atoms.

    Attributes:
        constant: the constant.
        terms: the factor of each atom, in the order in which the atoms were added. No factor is 0.
    """

    __slots__ = ("_hash", "constant", "terms")

    def __init__(self, constant: int, terms: Mapping[Atom, int] | None = None) -> None:
        self.constant: int = constant
        self.terms: Mapping[Atom, int] = terms if terms and 0 not in terms.values() else {
            atom: factor for atom, factor in terms.items() if factor} if terms else {}

    @classmethod
    def of(cls, atom: Atom) -> Self:
        """Returns the expression ``1 * atom + 0``."""
        return cls(0, {atom: 1})

    @property
    def known(self) -> bool:
        """Whether the expression has no atoms, so that its value is ``constant``."""
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
        """Returns ``self // divisor`` as a linear expression, or None if ``divisor`` does not divide the factors of all atoms.

        Args:
            divisor: an integer other than 0. The division rounds down; the constant need not be a multiple of ``divisor``.
        """
        if any(factor % divisor for factor in self.terms.values()):
            return None
        return type(self)(self.constant // divisor, {atom: factor // divisor for atom, factor in self.terms.items()})

    def remainder(self, divisor: int) -> int | None:
        """Returns ``self % divisor``, or None if ``divisor`` does not divide the factors of all atoms.

        With such factors, the remainder is the same for all values of the atoms. It has the sign of ``divisor``.
        """
        return None if any(factor % divisor for factor in self.terms.values()) else self.constant % divisor

    @property
    def single(self) -> tuple[Atom, int] | None:
        """The only atom of the expression with its factor, whatever the constant; None if it has no atom or several."""
        return next(iter(self.terms.items())) if len(self.terms) == 1 else None

    def factor(self, atom: Atom) -> int:
        """Returns the factor of an atom; 0 if the expression does not contain the atom."""
        return self.terms.get(atom, 0)

    def substitute(self, atom: Atom, by: Self | int) -> Self:
        """Returns the expression with ``by``, an expression or an integer, substituted for an atom."""
        rest = type(self)(self.constant, {other: factor for other, factor in self.terms.items() if other != atom})
        return rest + by * self.factor(atom)

    def bounds(self, of: Callable[[Atom], Interval]) -> Interval:
        """Returns an interval that contains all values of the expression.

        Args:
            of: a function of an atom that returns the interval of the atom's values.
        """
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
