"""Integers that are linear in the induction variables of loops, for a trace that executes only some iterations of a loop.

A :class:`LoopInt` has its value in the iteration that is traced, the *sample*, and a slope for each loop. While the body of the
loop uses it like an ``int``, the loop (:class:`SampledLoop`) collects the conditions under which later iterations do the same:

- A comparison holds up to some iteration, the ``limit`` of the loop.
- A remainder or quotient repeats with a ``period``: with ``i % 2``, iterations 0, 2, 4 ... do the same.

Offsets in GM may depend linearly on the iteration. Where a number must be known, such as the trip count of an inner loop, the
iteration represents no other iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor, gcd
from typing import Any

import numpy as np

from tilelang_npu.simulator.machine.memory import Array

Number = int | Fraction
_NEAR = 4
"""Number of iterations for which a quotient must stay constant to be taken as constant, in loops that need quotients."""


class SampledLoop:
    """A loop of which only some iterations are traced.

    Args:
        count: the number of iterations.
        depth: the number of enclosing loops.

    Attributes:
        count, depth: the arguments of the same name.
        index: the number of the iteration that is traced.
        limit: the first iteration, after the traced one, that possibly does something else for another reason than the period.
        period: the number of iterations after which they repeat.
        needs_quotients: whether an earlier iteration needed to know a quotient that differs from period to period, such as the
            trip count of an inner loop. Quotients are then taken as constant up to the limit, where that is far.
    """

    __slots__ = ("count", "depth", "index", "limit", "needs_quotients", "period")

    def __init__(self, count: int, depth: int) -> None:
        self.count, self.depth = count, depth
        self.index, self.limit, self.period = 0, count, 1
        self.needs_quotients = False

    def restrict(self, iterations: int) -> None:
        """Notes that the traced iteration does not represent the one that is ``iterations`` later, nor for any after that."""
        self.limit = min(self.limit, self.index + max(1, iterations))

    def repeat(self, period: int) -> None:
        """Notes that the traced iteration represents only those that are a multiple of ``period`` later."""
        self.period = self.period * period // gcd(self.period, period)

    @property
    def last(self) -> int:
        """The number of iterations from the traced one to the last one for which it can stand."""
        return (self.limit - 1 - self.index) // self.period * self.period


class LoopInt:
    """An integer that is linear in the iterations of loops.

    Args:
        base: the value in the traced iterations.
        slopes: for each loop, by how much the value grows from one iteration to the next. A fraction is only valid for
            iterations that are a multiple of the loop's period apart.
    """

    __slots__ = ("base", "slopes")
    __hash__ = None  # type: ignore[assignment]  # equality depends on the iteration

    def __init__(self, base: int, slopes: Mapping[SampledLoop, Number]) -> None:
        self.base, self.slopes = base, slopes

    def plain(self) -> int:
        """Returns the value in the traced iterations, which then represent no other iterations."""
        for loop, slope in self.slopes.items():
            loop.restrict(1)
            loop.needs_quotients |= type(slope) is Fraction and slope.denominator != 1
        return self.base

    def _inner_loop(self) -> tuple[SampledLoop, Number]:
        """Returns the innermost loop in which the value differs, with its slope. The traced iterations of loops around it then
        represent no other iterations."""
        *outer, inner = sorted(self.slopes, key=lambda loop: loop.depth)
        for loop in outer:
            loop.restrict(1)
        return inner, self.slopes[inner]

    def ends(self) -> tuple[int, int]:
        """Returns the least and the greatest value in the iterations for which the traced ones can stand."""
        low = high = Fraction(self.base)
        for loop, slope in self.slopes.items():
            reach = slope * loop.last
            low, high = low + min(reach, 0), high + max(reach, 0)
        return floor(low), ceil(high)

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def __add__(self, other: int | LoopInt) -> int | LoopInt:
        if isinstance(other, LoopInt):
            slopes = dict(self.slopes)
            for loop, slope in other.slopes.items():
                slopes[loop] = slopes.get(loop, 0) + slope
            return made(self.base + other.base, slopes)
        return LoopInt(self.base + self._plain(other), self.slopes)

    __radd__ = __add__

    def __neg__(self) -> LoopInt:
        return LoopInt(-self.base, {loop: -slope for loop, slope in self.slopes.items()})

    def __sub__(self, other: int | LoopInt) -> int | LoopInt:
        return self + -other

    def __rsub__(self, other: int) -> int | LoopInt:
        return -self + other

    def __mul__(self, other: int | LoopInt) -> int | LoopInt:
        factor = self._plain(other)
        return made(self.base * factor, {loop: slope * factor for loop, slope in self.slopes.items()})

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> int | LoopInt:
        if type(other) is not int or other <= 0:
            return self.plain() // self._plain(other)
        if not self._repeats(other):
            return self.base // other
        loop, slope = self._inner_loop()
        return LoopInt(self.base // other, {loop: Fraction(slope) / other})

    def __mod__(self, other: int) -> int | LoopInt:
        if type(other) is not int or other <= 0:
            return self.plain() % self._plain(other)
        return self.base % other if self._repeats(other) else LoopInt(self.base % other, self.slopes)

    def __and__(self, other: int) -> int | LoopInt:
        if type(other) is not int or other <= 0 or other & (other + 1):
            return self.plain() & self._plain(other)
        return self % (other + 1)

    def _repeats(self, divisor: int) -> bool:
        """Chooses how quotient and remainder by a divisor depend on the iteration, and notes it at the loop.

        Returns:
            True if the remainder repeats with the loop's period; False if the quotient is constant up to the loop's limit.
        """
        low, high = self.ends()
        if low // divisor == high // divisor:
            return False
        loop, slope = self._inner_loop()
        step = Fraction(slope)
        period = step.denominator * divisor // gcd(step.numerator, step.denominator * divisor)
        quotient = self.base // divisor
        if step > 0:
            constant = ceil(((quotient + 1) * divisor - self.base) / step)
        else:
            constant = floor((self.base - quotient * divisor) / -step) + 1
        if loop.needs_quotients:
            is_constant = constant > max(_NEAR, loop.period) and period > loop.period
        else:
            is_constant = step.denominator == 1 and 2 * period > loop.count
        if is_constant:
            loop.restrict(constant)
            return False
        loop.repeat(period)
        return True

    @staticmethod
    def _plain(other: int | LoopInt) -> int:
        return other.plain() if isinstance(other, LoopInt) else int(other)

    # -- comparisons ---------------------------------------------------------------------------------------------------

    def __lt__(self, other: int | LoopInt) -> bool:
        return _is_negative(self - other)

    def __ge__(self, other: int | LoopInt) -> bool:
        return not _is_negative(self - other)

    def __gt__(self, other: int | LoopInt) -> bool:
        return _is_negative(other - self)

    def __le__(self, other: int | LoopInt) -> bool:
        return not _is_negative(other - self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (int, LoopInt)):
            return False
        difference = self - other
        if not isinstance(difference, LoopInt):
            return difference == 0
        loop, slope = difference._inner_loop()
        if not difference.base:
            loop.restrict(1)
            return True
        equal = Fraction(-difference.base) / slope
        if equal > 0 and equal.denominator == 1:
            loop.restrict(int(equal))
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        return self != 0

    def __index__(self) -> int:
        return self.plain()

    __int__ = __index__


def made(base: int, slopes: Mapping[SampledLoop, Number]) -> int | LoopInt:
    """Returns the integer with a value and slopes; an ``int`` if all slopes are 0."""
    left = {loop: slope for loop, slope in slopes.items() if slope}
    return LoopInt(base, left) if left else base


def _is_negative(value: int | LoopInt) -> bool:
    """Whether a value is below 0 in the traced iteration; notes at the loop how long this holds."""
    if not isinstance(value, LoopInt):
        return value < 0
    loop, slope = value._inner_loop()
    if value.base < 0:
        if slope > 0:
            loop.restrict(ceil(Fraction(-value.base) / slope))
        return True
    if slope < 0:
        loop.restrict(floor(Fraction(value.base) / -slope) + 1)
    return False


class Unread:
    """A placeholder for an array whose address differs between iterations, so that its elements cannot be read."""

    def __init__(self, element: np.dtype[np.generic]) -> None:
        self.dtype = element


def viewed(shape: tuple[int, ...], element: np.dtype[np.generic], memory: Array, offset: int | LoopInt,
           strides: tuple[int, ...]) -> Array | Unread:
    """Replaces ``numpy.ndarray`` in generated code: creates an array at an offset that can differ between iterations.

    The array is also created at the least and at the greatest offset of all iterations for which the traced one can stand, so
    that NumPy checks the bounds of all. If one of them is out of bounds, the traced iterations represent no other iterations.

    Args:
        shape, element, memory, offset, strides: as for ``numpy.ndarray``.
    """
    create: Callable[..., Any] = np.ndarray
    if type(offset) is not LoopInt:
        found: Array = create(shape, element, memory, offset, strides)
        return found
    own: Array = create(shape, element, memory, offset.base, strides)
    try:
        for end in offset.ends():
            create(shape, element, memory, end, strides)
    except (TypeError, ValueError):
        offset.plain()
    return Unread(own.dtype)
