"""Values to try for a number of a kernel, such as the size of a tile or the number of blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

_FACTORS = ((2, 1), (1, 2), (4, 1), (3, 2), (1, 4), (8, 1), (3, 1), (3, 4))
"""Factors by which a number is changed, as numerator and denominator, the most useful first."""
_MAX_NUMBER = 8192
"""The largest number that is proposed."""
MAX_COUNT = 4
"""Numbers up to this one are also changed by one."""
_DIVISORS = 3
"""How many of the divisors of an extent that are near a number are proposed."""


class ValueStep(NamedTuple):
    """A value to try.

    Attributes:
        value: the value.
        fine: whether the step is small, so that it is tried after the large steps.
    """

    value: int
    fine: bool = False


def values_to_try(current: int, cores: Iterable[int], extents: Iterable[int], *, in_grid: bool = False) -> Iterator[ValueStep]:
    """Yields the values to try in place of a number: doubled and halved, the number of cores, and shares of an extent.

    Args:
        current: the number.
        cores: the numbers of Cube cores and of Vector cores of the chip.
        extents: the different sizes of the kernel's parameters.
        in_grid: whether the launch has as many blocks.
    """
    cores = tuple(cores)
    large = [2 * current, current // 2] if current % 2 == 0 else [2 * current, current - 1]
    if in_grid:
        large += cores
    fine = [current * up // down for up, down in _FACTORS if current * up % down == 0]
    if current <= MAX_COUNT:
        fine += [current + 1, current - 1]
    for extent in extents:
        fine += [extent // count for count in cores if extent % count == 0 and current // 8 <= extent // count <= 8 * current]
        divisors = [one for one in range(max(current // 4, 1), min(4 * current, extent) + 1) if extent % one == 0]
        fine += sorted(divisors, key=lambda one: abs(one - current))[:_DIVISORS]
    for value in dict.fromkeys([*large, *fine]):
        if 0 < value <= _MAX_NUMBER and value != current:
            yield ValueStep(value, fine=value not in large)
