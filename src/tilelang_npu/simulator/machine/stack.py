"""Blocks that run as one: all do the same ops on the same places on chip, and at places in GM that lie evenly apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilelang_npu.simulator.machine.memory import Array

Front = tuple[int, int, int, int]
"""Of the two axes in front of an array how long they are, and bytes from one step to the next."""


@dataclass
class Flow:
    """Where the numbers come from that a core has on chip.

    Attributes:
        parts: parts of memories, as the memory, the first byte, and the one behind the last; memories of several cores are one.
        writes: what each op writes: the part, and where that comes from, operands in GM and parts by number.
        foreign: memories of other cores that it reaches.
    """

    parts: dict[tuple[str, int, int], int] = field(default_factory=dict)
    writes: list[tuple[int, set[int], set[int]]] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)

    def part(self, memory: str, low: int, high: int) -> int:
        """The number of a part."""
        return self.parts.setdefault((memory, low, high), len(self.parts))

    def overlapping(self) -> list[int]:
        """Of each part the number of one that stands for it and all that have bytes in common with it."""
        found = [0] * len(self.parts)
        open_: tuple[str, int, int] | None = None  # memory, end, part
        for (memory, low, high), number in sorted(self.parts.items()):
            if open_ is None or open_[0] != memory or low >= open_[1]:
                open_ = memory, high, number
            open_ = memory, max(high, open_[1]), open_[2]
            found[number] = open_[2]
        return found


class Stack:
    """How the arrays of some blocks lie, as one core sees them: two axes stand in front of each, of which the second goes from
    block to block and the first from row to row of blocks. Where all along an axis have the same numbers, they have them once,
    and the axis is one step long.

    Args:
        sizes: rows of blocks, and blocks of a row.
        places: bytes from row to row and from block to block, of each operand in GM in the order of the ops' records.
        gaps: bytes from block to block in each memory on chip.
        foreign: memories on chip that other cores reach.
        blocks: numbers of the blocks, row by row.
    """

    def __init__(self, sizes: tuple[int, int], places: tuple[tuple[int, int], ...], gaps: Mapping[str, int],
                 foreign: frozenset[str], blocks: Sequence[int]) -> None:
        self.sizes, self.places, self.gaps, self.blocks = sizes, places, gaps, blocks
        self._foreign = foreign
        self._fronts: dict[str, list[Front]] = {}

    @property
    def count(self) -> int:
        """Blocks in it."""
        return self.sizes[0] * self.sizes[1]

    def in_gm(self, operand: int, *, written: bool) -> Front:
        """The axes of an operand in GM. What blocks write at one place has no elements, and room for what each of them has."""
        far, near = self.places[operand]
        if written:
            return *self.sizes, far, near
        return (self.sizes[0] if far else 1), (self.sizes[1] if near else 1), far, near

    def on_chip(self, flow: Flow, memory: str) -> list[Front]:
        """The axes of each part of the memories on chip that the flow tells of, by number, as they lie in one memory."""
        found = self._fronts.get(memory)
        if found is None:
            found = self._fronts[memory] = self._found(flow, memory)
        return found

    def _found(self, flow: Flow, memory: str) -> list[Front]:
        gap = self.gaps.get(memory, 0)
        rows, row = (self._apart(flow, axis) for axis in range(2))
        return [((self.sizes[0] if far else 1), (self.sizes[1] if near else 1), gap * self.sizes[1], gap)
                for far, near in zip(rows, row, strict=True)]

    def _apart(self, flow: Flow, axis: int) -> list[bool]:
        """Of each part, whether blocks along an axis may have different numbers there."""
        owner = flow.overlapping()
        apart = [memory in self._foreign for memory, _, _ in flow.parts]
        found = {owner[number] for number, one in enumerate(apart) if one}
        before = -1
        while len(found) != before:
            before = len(found)
            for target, operands, parts in flow.writes:
                if any(self.places[operand][axis] for operand in operands) or any(owner[part] in found for part in parts):
                    found.add(owner[target])
        return [one in found for one in owner]

    def each(self, work: Callable[..., object], arrays: Sequence[Array]) -> None:
        """Do something for one block after the other, each with its part of the arrays; what fails says in which."""
        for row, place in np.ndindex(*np.broadcast_shapes(*(array.shape[:2] for array in arrays))):
            try:
                work(*[array[min(row, array.shape[0] - 1), min(place, array.shape[1] - 1), ...] for array in arrays])
            except Exception as error:
                vars(error)["block"] = self.blocks[row * self.sizes[1] + place]
                raise


def block_of(error: Exception, block: int) -> int:
    """The block in which something failed: of a stack it may be another one than the first."""
    found: int = vars(error).get("block", block)
    return found
