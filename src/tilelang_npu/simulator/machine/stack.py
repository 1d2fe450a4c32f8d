"""Blocks that run as one: all do the same ops on the same places on chip, and at places in GM that lie evenly apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilelang_npu.simulator.machine.layout import ArrayPlace, Panels, in_rows
from tilelang_npu.simulator.machine.memory import Array

Front = tuple[int, int, int, int, int]
"""Of the two axes in front of an array how long they are, and bytes from one step to the next; how much farther in memory the
array of the first block lies than in that of a block by itself."""
_LINE = 32
"""Buffers on chip begin at multiples of so many bytes."""


@dataclass
class Flow:
    """Where the numbers come from that a core has on chip.

    Attributes:
        parts: parts of memories, as the memory, the first byte, and the one behind the last; memories of several cores are one.
        writes: what each op writes: the part, and where that comes from, operands in GM and parts by number.
        foreign: memories of other cores that it reaches.
        places: the arrays over parts of memories on chip, as the part and where the array lies, None where that is not known.
        matrices: what is multiplied, as the part and how it lies in fractals, None where it has to.
    """

    parts: dict[tuple[str, int, int], int] = field(default_factory=dict)
    writes: list[tuple[int, set[int], set[int]]] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)
    places: list[tuple[int, ArrayPlace | None]] = field(default_factory=list)
    matrices: list[tuple[int, Panels | None]] = field(default_factory=list)

    def part(self, memory: str, low: int, high: int) -> int:
        """The number of a part."""
        return self.parts.setdefault((memory, low, high), len(self.parts))

    def overlapping(self) -> list[int]:
        """Of each part the number of one that stands for it and all that have bytes in common with it."""
        return [owner for owner, _, _ in self.stretches()]

    def stretches(self) -> list[tuple[int, int, int]]:
        """Of each part the number of one that stands for it and all that have bytes in common with it, the first byte of all
        these, and the one behind the last."""
        ends: dict[int, tuple[int, int]] = {}
        owners = [0] * len(self.parts)
        open_: tuple[str, int] | None = None  # memory, part
        for (memory, low, high), number in sorted(self.parts.items()):
            if open_ is None or open_[0] != memory or low >= ends[open_[1]][1]:
                open_ = memory, number
                ends[number] = low, high
            owner = owners[number] = open_[1]
            ends[owner] = ends[owner][0], max(high, ends[owner][1])
        return [(owner, *ends[owner]) for owner in owners]

    def laid(self, foreign: frozenset[str]) -> list[ArrayPlace | None]:
        """Where the arrays lie: those over matrices that nothing else looks at in rows.

        Args:
            foreign: memories that other cores reach.
        """
        owner = self.overlapping()
        memory_of = [memory for memory, _, _ in self.parts]
        found = [place for _, place in self.places]
        arrays: dict[int, list[int]] = {}
        for number, (part, _) in enumerate(self.places):
            arrays.setdefault(owner[part], []).append(number)
        for group in {owner[part] for part, _ in self.matrices if memory_of[part] not in foreign}:
            numbers = arrays.get(group, [])
            matrices = [panels for part, panels in self.matrices if owner[part] == group]
            for number, moved in zip(numbers, in_rows(matrices, [found[number] for number in numbers]) or (), strict=False):
                found[number] = moved
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
        self._laid: list[ArrayPlace | None] = []

    @property
    def count(self) -> int:
        """Blocks in it."""
        return self.sizes[0] * self.sizes[1]

    def in_gm(self, operand: int, *, written: bool) -> Front:
        """The axes of an operand in GM. What blocks write at one place has no elements, and room for what each of them has."""
        far, near = self.places[operand]
        if written:
            return *self.sizes, far, near, 0
        return (self.sizes[0] if far else 1), (self.sizes[1] if near else 1), far, near, 0

    def on_chip(self, flow: Flow, memory: str) -> list[Front]:
        """The axes of each part of the memories on chip that the flow tells of, by number, as they lie in one memory."""
        found = self._fronts.get(memory)
        if found is None:
            found = self._fronts[memory] = self._found(flow, memory)
        return found

    def place(self, flow: Flow, number: int) -> tuple[int, ...]:
        """Offset and strides of one of the arrays on chip that the flow tells of."""
        if not self._laid:
            self._laid = flow.laid(self._foreign)
        found = self._laid[number]
        assert found is not None
        return found.offset, *found.strides

    def _found(self, flow: Flow, memory: str) -> list[Front]:
        gap = self.gaps.get(memory, 0)
        rows, row = (self._apart(flow, axis) for axis in range(2))
        found: list[Front] = []
        for far, near, (_, low, high) in zip(rows, row, flow.stretches(), strict=True):
            step, shift = gap, 0
            if high <= gap and memory not in self._foreign:  # what all blocks have of it lies together, before what comes next
                step, shift = -(-(high - low) // _LINE) * _LINE, low * (self.count - 1)
            sizes = (self.sizes[0] if far else 1), (self.sizes[1] if near else 1)
            found.append((*sizes, step * sizes[1], step, shift))
        return found

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
