"""The statements of a function whose behaviour depends on data, and the numbers that a trace uses in place of data.

A trace runs the generated code of a block in order to record its ops and computes no values. Numbers that the scalar unit would
read from memory are therefore unknown in a trace.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilelang_npu.errors import Location
from tilelang_npu.simulator.machine.memory import Array


@dataclass(frozen=True)
class DataUse:
    """A statement whose behaviour depends on data.

    Attributes:
        what: the property of the statement that depends on data: ``branch`` (whether it is taken), ``trips`` (a trip count),
            ``place`` (an address), ``flag`` (the number of an event or flag), or ``extent`` (any other number that is an
            operand).
        location: the source line of the kernel; None where it is not known.
        number: the key of a branch or ``while`` in :attr:`PlaceholderData.ways`; -1 for other statements.
    """

    what: str
    location: Location | None
    number: int = -1


@dataclass(frozen=True)
class DataUses:
    """The data-dependent behaviour of a device function, described without references to IR.

    Attributes:
        uses: the statements whose behaviour depends on data, in program order, each once.
        compared: integer constants that the function compares with numbers from memory, or combines with them by arithmetic.
    """

    uses: tuple[DataUse, ...]
    compared: tuple[int, ...]


BranchOutcomes = dict[int, set[bool]]
"""For each data-dependent branch, by its number, the values that its condition has had."""


class PlaceholderData:
    """Supplies the numbers that the scalar unit reads from memory during a trace, and records what depends on them.

    Attributes:
        value: the number that every read returns. If it is a pair, reads of elements at even positions in memory return the
            first number of the pair and reads at odd positions the second. If it is None, reads return the elements of the
            arrays.
        ways: for each data-dependent branch, the values that its condition has had in the trace.
        numbers: for each block and sub-block, in program order, the scalar operands of ops that depend on the block index and
            that the events do not contain.
    """

    def __init__(self, value: int | tuple[int, int] | None = None, ways: BranchOutcomes | None = None) -> None:
        self.value = value
        self.ways = {} if ways is None else ways
        self.numbers: dict[tuple[int, int], list[object]] = {}

    def read(self, element: Array) -> float:
        """Returns the number that the scalar unit reads from an element.

        Args:
            element: a zero-dimensional array that is a view of the element.
        """
        value = self.value
        if value is None:
            found: float = element.item()
            return found
        if isinstance(value, tuple):  # by address, so that reading one element twice gives the same number
            value = value[element.ctypes.data // element.itemsize % 2]
        made: float = np.asarray(value).astype(element.dtype).item()
        return made

    def note_scalars(self, block: int, sub: int, *numbers: object) -> None:
        """Records scalar operands of an op in ``numbers``.

        Args:
            block, sub: the block and the sub-block that run the op.
            numbers: the operands.
        """
        self.numbers.setdefault((block, sub), []).extend(numbers)

    def branch(self, number: int, condition: object) -> bool:
        """Records the value of the condition of branch ``number`` in ``ways``, and returns it as a ``bool``."""
        self.ways.setdefault(number, set()).add(bool(condition))
        return bool(condition)
