"""Integers with one value per block, for the integers that the scalar unit computes from the block index.

A :class:`BatchedInt` is a constant plus multiples of *parts*. A part is an array with one value per block: the block indices,
or the results of a division or a remainder. Adding integers and multiplying by a constant combine the factors of the parts, so
their cost does not depend on the number of blocks, and they are exact. An address that a loop advances by a constant has the
same parts in every iteration, and another constant.

Blocks *diverge* where a condition holds in only some of the blocks, or where a loop has a different trip count in some blocks.
:class:`DivergedError` then contains the groups of blocks that behave equally, and each group is traced again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.machine.memory import Array

Numbers = NDArray[np.int64]
Terms = tuple[tuple[int, int], ...]
"""The terms of a sum: the number of each part with its factor, sorted by number."""
LARGEST = 1 << 62
"""Bound of the magnitude of all values that are computed in 64 bits."""
MOST_CELLS = 1 << 22
"""Limit of the number of values in all parts together; a launch whose addresses need more is traced block by block."""


class DivergedError(Exception):
    """Raised if a value on which the control flow depends, such as a condition or a trip count, differs between blocks.

    Args:
        values: the value in each block.

    Attributes:
        groups: for each distinct value, the positions in the batch of the blocks with this value.
    """

    def __init__(self, values: Array) -> None:
        super().__init__("blocks do different things")
        _, number = np.unique(values, return_inverse=True)
        self.groups = [np.flatnonzero(number.reshape(-1) == one) for one in range(int(number.max()) + 1)]


class NotBatchableError(Exception):
    """Raised if a batched integer cannot represent a value, so that the blocks must be traced one by one."""


class BlockBatch:
    """A batch of blocks, with the parts (see the module) of the integers that have one value for each of these blocks.

    Args:
        numbers: the indices of the blocks.

    Attributes:
        count: the number of blocks.
        number: the block index as a batched integer.
    """

    def __init__(self, numbers: Numbers) -> None:
        self.count = len(numbers)
        self._parts: list[Numbers] = []
        self._sizes: list[int] = []
        self._known: dict[bytes, int] = {}
        self._sums: dict[Terms, tuple[int, int]] = {}
        self._made: dict[tuple[str, Terms, int, int], BatchedInt | int] = {}
        self.number = self.of(np.asarray(numbers, np.int64))

    def of(self, values: Numbers) -> BatchedInt | int:
        """Returns the integer with the given values, one per block; an ``int`` if all values are equal.

        Raises:
            NotBatchableError: the integer needs a new part, and the parts would have more than ``MOST_CELLS`` values.
        """
        first = int(values[0])
        part = values - first
        if not part.any():
            return first
        key = part.tobytes()
        number = self._known.get(key)
        if number is None:
            if (len(self._parts) + 1) * self.count > MOST_CELLS:
                raise NotBatchableError
            number = self._known[key] = len(self._parts)
            self._parts.append(part)
            self._sizes.append(int(np.abs(part).max()))
        return BatchedInt(self, ((number, 1),), first)

    def sum(self, terms: Terms) -> Numbers:
        """Returns the value of a sum of multiples of parts, in each block.

        Args:
            terms: for each part in the sum, the number of the part and its factor.

        Raises:
            NotBatchableError: the magnitude of the sum possibly exceeds ``LARGEST``.
        """
        if sum(abs(factor) * self._sizes[part] for part, factor in terms) >= LARGEST:
            raise NotBatchableError
        total = np.zeros(self.count, np.int64)
        for part, factor in terms:
            total += self._parts[part] * np.int64(factor)
        return total

    def ends(self, terms: Terms) -> tuple[int, int]:
        """Returns the least and the greatest value that a sum of multiples of parts has in any block."""
        found = self._sums.get(terms)
        if found is None:
            values = self.sum(terms)
            found = self._sums[terms] = int(values.min()), int(values.max())
        return found

    def made(self, name: str, one: BatchedInt, other: int, work: Callable[[Numbers, int], Numbers]) -> BatchedInt | int:
        """Returns the result of a function of a batched integer and a constant. The result is cached.

        Args:
            name: identifies the function in the cache.
            one: the batched integer.
            other: the constant.
            work: the function; its arguments are the values of the integer in all blocks, and the constant.

        Raises:
            NotBatchableError: the cached results have more than ``MOST_CELLS`` values, or the result needs too many parts.
        """
        key = name, one.terms, one.constant, other
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self.of(work(one.values(), other))
            if len(self._made) * self.count > MOST_CELLS:
                raise NotBatchableError
        return found


class BatchedInt:
    """An integer with one value for each block of a batch, which generated code uses like an ``int``.

    Its operators raise :class:`NotBatchableError` where they cannot represent the result. Comparisons, the truth value and the
    conversion to ``int`` raise :class:`DivergedError` where the result differs between blocks.

    Args:
        blocks: the batch. It stores *parts*: vectors with one number for each block.
        terms: pairs of a part (its index in the batch) and an integer factor. The value in a block is the sum of the factors
            times the numbers of their parts, plus ``constant``.
        constant: the constant term.
    """

    __slots__ = ("blocks", "constant", "terms")
    __hash__ = None  # type: ignore[assignment]  # equality depends on the blocks

    def __init__(self, blocks: BlockBatch, terms: Terms, constant: int) -> None:
        self.blocks, self.terms, self.constant = blocks, terms, constant

    def values(self) -> Numbers:
        """Returns the value of the integer in each block."""
        if abs(self.constant) >= LARGEST:
            raise NotBatchableError
        return self.blocks.sum(self.terms) + self.constant

    def ends(self) -> tuple[int, int]:
        """Returns the least and the greatest value that the integer has in any block."""
        low, high = self.blocks.ends(self.terms)
        return low + self.constant, high + self.constant

    def __add__(self, other: BatchedInt | int) -> BatchedInt | int:
        if isinstance(other, int):
            return BatchedInt(self.blocks, self.terms, self.constant + other)
        factors = dict(self.terms)
        for part, factor in other.terms:
            factors[part] = factors.get(part, 0) + factor
        terms = tuple(sorted((part, factor) for part, factor in factors.items() if factor))
        constant = self.constant + other.constant
        return BatchedInt(self.blocks, terms, constant) if terms else constant

    __radd__ = __add__

    def __neg__(self) -> BatchedInt:
        return BatchedInt(self.blocks, tuple((part, -factor) for part, factor in self.terms), -self.constant)

    def __sub__(self, other: BatchedInt | int) -> BatchedInt | int:
        return self + -other

    def __rsub__(self, other: int) -> BatchedInt | int:
        return -self + other

    def __mul__(self, other: BatchedInt | int) -> BatchedInt | int:
        if isinstance(other, int):
            if not other:
                return 0
            return BatchedInt(self.blocks, tuple((part, factor * other) for part, factor in self.terms), self.constant * other)
        (low, high), (least, most) = self.ends(), other.ends()
        if max(abs(low), abs(high)) * max(abs(least), abs(most)) >= LARGEST:
            raise NotBatchableError
        return self.blocks.of(self.values() * other.values())

    __rmul__ = __mul__

    def __floordiv__(self, other: BatchedInt | int) -> BatchedInt | int:
        if not isinstance(other, int) or not 0 < other < LARGEST:
            raise NotBatchableError
        if all(factor % other == 0 for _, factor in self.terms):
            return BatchedInt(self.blocks, tuple((part, factor // other) for part, factor in self.terms),
                              self.constant // other)
        return self.blocks.made("//", self, other, np.floor_divide)

    def __mod__(self, other: BatchedInt | int) -> BatchedInt | int:
        if not isinstance(other, int) or not 0 < other < LARGEST:
            raise NotBatchableError
        if all(factor % other == 0 for _, factor in self.terms):
            return self.constant % other
        return self.blocks.made("%", self, other, np.mod)

    def __lshift__(self, other: int) -> BatchedInt | int:
        return self * (1 << other)

    def __rshift__(self, other: int) -> BatchedInt | int:
        return self // (1 << other)

    def __and__(self, other: int) -> BatchedInt | int:
        low, high = self.ends()
        if low >= 0 and high <= other and other & (other + 1) == 0:
            return self
        if not 0 <= other < LARGEST:
            raise NotBatchableError
        return self.blocks.made("&", self, other, np.bitwise_and)

    __rand__ = __and__

    def __abs__(self) -> BatchedInt | int:
        return self if self.ends()[0] >= 0 else self.blocks.of(np.abs(self.values()))

    def _uniform(self, holds: Callable[[int, int], bool], low: int, high: int, values: Callable[[Numbers], Array]) -> bool:
        """Returns the truth value of a comparison, which must be the same in all blocks.

        Args:
            holds: returns whether the comparison holds in all blocks, judged from the bounds ``low`` and ``high`` alone.
            low, high: the least and the greatest value of the integer.
            values: evaluates the comparison for each block, given the values of the integer; used where ``holds`` is false.

        Raises:
            DivergedError: the truth value differs between blocks.
        """
        if holds(low, high):
            return True
        made = values(self.values())
        if made.any() and not made.all():
            raise DivergedError(made)
        return bool(made[0])

    def __lt__(self, other: BatchedInt | int) -> bool:
        gap = self - other
        if isinstance(gap, int):
            return gap < 0
        return gap._uniform(lambda low, high: high < 0, *gap.ends(), lambda values: values < 0)

    def __le__(self, other: BatchedInt | int) -> bool:
        return self < other + 1

    def __gt__(self, other: BatchedInt | int) -> bool:
        return not self < other + 1

    def __ge__(self, other: BatchedInt | int) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (int, BatchedInt)):
            return NotImplemented
        gap = self - other
        if isinstance(gap, int):
            return gap == 0
        low, high = gap.ends()
        if low > 0 or high < 0:
            return False
        return gap._uniform(lambda low, high: low == high == 0, low, high, lambda values: values == 0)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        return self != 0

    def __index__(self) -> int:
        """Returns the value of the integer if it is the same in all blocks.

        Raises:
            DivergedError: the value differs between blocks.
        """
        low, high = self.ends()
        if low != high:
            raise DivergedError(self.values())
        return low

    __int__ = __index__
