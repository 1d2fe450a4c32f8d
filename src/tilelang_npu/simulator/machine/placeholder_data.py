"""Data-dependent behaviour of a function without its IR, and the placeholders for the data that a trace does not know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilelang_npu.errors import Location
from tilelang_npu.simulator.machine.memory import Array


@dataclass(frozen=True)
class DataUse:
    """A place where behaviour depends on data.

    Attributes:
        what: ``branch``, ``trips``, ``place``, ``flag``, or ``extent`` for a number that an op takes.
        location: the kernel's line.
        number: for a branch, its key in :attr:`PlaceholderData.ways`.
    """

    what: str
    location: Location | None
    number: int = -1


@dataclass(frozen=True)
class DataUses:
    """The data-dependent behaviour of a function.

    Attributes:
        uses: what depends on data, in program order, each once.
        compared: constants that are compared or computed with numbers from memory.
    """

    uses: tuple[DataUse, ...]
    compared: tuple[int, ...]


BranchOutcomes = dict[int, set[bool]]
"""For each data-dependent branch, by its number, the values that its condition has had."""


class PlaceholderData:
    """Supplies the numbers that the scalar unit reads from memory during a trace.

    Attributes:
        value: the number that every read returns; a pair is returned alternately, by address; None reads the arrays.
        ways: the record of branches.
        numbers: by block and sub-block, the scalar operands of its ops that may differ between blocks and are not facts of the
            events, in order.
    """

    def __init__(self, value: int | tuple[int, int] | None = None, ways: BranchOutcomes | None = None) -> None:
        self.value = value
        self.ways = {} if ways is None else ways
        self.numbers: dict[tuple[int, int], list[object]] = {}

    def read(self, element: Array) -> float:
        """Returns a number that the scalar unit reads, given an array of one element."""
        value = self.value
        if value is None:
            found: float = element.item()
            return found
        if isinstance(value, tuple):  # by address, so that reading one element twice gives the same number
            value = value[element.ctypes.data // element.itemsize % 2]
        made: float = np.asarray(value).astype(element.dtype).item()
        return made

    def note_scalars(self, block: int, sub: int, *numbers: object) -> None:
        """Records scalar operands of an op of a block."""
        self.numbers.setdefault((block, sub), []).extend(numbers)

    def branch(self, number: int, condition: object) -> bool:
        """Records the value of a branch condition, and returns it."""
        self.ways.setdefault(number, set()).add(bool(condition))
        return bool(condition)
