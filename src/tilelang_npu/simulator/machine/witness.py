"""What a trace puts in the place of numbers that it does not know, and notes of the ways that it takes."""

from __future__ import annotations

import numpy as np

from tilelang_npu.simulator.machine.memory import Array

Ways = dict[int, set[bool]]
"""Of each branch that depends on data, by its number, how its condition came out."""


class Witness:
    """Stands in for numbers that the kernel reads.

    Attributes:
        value: what is read, wherever it is read; two numbers are read in turn, from place to place; None gives what the arrays
            hold.
        ways: what is noted.
        numbers: by block and sub-block the numbers that its ops take and that need not be those of other blocks, in their
            order, as far as they are not in the events.
    """

    def __init__(self, value: int | tuple[int, int] | None = None, ways: Ways | None = None) -> None:
        self.value = value
        self.ways = {} if ways is None else ways
        self.numbers: dict[tuple[int, int], list[object]] = {}

    def read(self, element: Array) -> float:
        """A number that the scalar unit reads, from an array of one element."""
        value = self.value
        if value is None:
            found: float = element.item()
            return found
        if isinstance(value, tuple):  # by the place, so that what is read twice is read alike
            value = value[element.ctypes.data // element.itemsize % 2]
        made: float = np.asarray(value).astype(element.dtype).item()
        return made

    def note(self, block: int, sub: int, *numbers: object) -> None:
        """Note numbers that an op of a block takes."""
        self.numbers.setdefault((block, sub), []).extend(numbers)

    def way(self, number: int, condition: object) -> bool:
        """Note how a condition comes out."""
        self.ways.setdefault(number, set()).add(bool(condition))
        return bool(condition)
