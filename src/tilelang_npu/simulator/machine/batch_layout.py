"""The layout of a batch: blocks that run as one, with the same ops on the same on-chip offsets, evenly spaced in GM.

Every array of a batch has two batch axes. In addition, fractal matrices may be stored row by row where no op can see the
difference. A fractal matrix consists of panels: all rows and some columns, 32 bytes of a row in L1 and 16 numbers in L0C. NumPy
and BLAS are faster on whole rows. A buffer can be stored row by row if every array over it steps from panel to panel, from row
to row, or within a row of a panel: then only offsets and strides change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from tilelang_npu.simulator.machine.memory import Array


@dataclass(frozen=True)
class Panels:
    """The fractal layout of a matrix.

    Attributes:
        start: byte offset of the matrix.
        count: number of panels.
        stride: bytes from one panel to the next.
        run: bytes of a row in a panel.
    """

    start: int
    count: int
    stride: int
    run: int


@dataclass(frozen=True)
class ArrayPlace:
    """The offset and strides of an array over a memory, as far as they are known statically.

    Attributes:
        offset: byte offset of the array.
        sizes: the largest size of each axis.
        strides: bytes between neighbouring elements of each axis.
        element: bytes of an element.
    """

    offset: int
    sizes: tuple[float, ...]
    strides: tuple[int, ...]
    element: int

    def in_rows(self, panels: Panels) -> ArrayPlace | None:
        """Returns the array's place once the matrix is stored row by row; None where no strides describe it then."""
        row = panels.count * panels.run
        # Decompose every step into panels, rows and bytes of a row; each level has another stride in the new layout.
        levels = ((panels.stride, panels.run), (panels.run, row), (1, 1))  # stride in panels, stride by rows
        ends: list[float] = []  # the last panel, row, and byte within the row
        offset, rest = panels.start, self.offset - panels.start
        for step, moved in levels:
            first, rest = divmod(rest, step)
            offset += first * moved
            ends.append(first)
        ends[2] += self.element - 1
        strides = []
        for size, stride in zip(self.sizes, self.strides, strict=True):
            level = next((number for number, (step, _) in enumerate(levels) if stride >= step), 2)
            steps, over = divmod(stride, levels[level][0])
            if stride < 0 or over:
                return None
            if size > 1 and steps:
                ends[level] += steps * (size - 1)
            strides.append(steps * levels[level][1])
        inside = ends[0] < panels.count and ends[1] < panels.stride // panels.run and ends[2] < panels.run
        return ArrayPlace(offset, self.sizes, tuple(strides), self.element) if self.offset >= panels.start and inside else None


def panels_of(place: ArrayPlace, low: int, high: int) -> Panels | None:
    """Returns the panels of a matrix that an array ``[panels, rows, elements of a row]`` covers whole; None otherwise."""
    if len(place.sizes) != 3 or inf in place.sizes:
        return None
    stride, run, _ = place.strides
    if place.offset != low or run != place.element * place.sizes[2] or stride % run or (high - low) % stride:
        return None
    return Panels(low, (high - low) // stride, stride, run)


def in_rows(matrices: Iterable[Panels | None], places: Sequence[ArrayPlace | None]) -> list[ArrayPlace] | None:
    """Returns the places of all arrays over a buffer once it is stored row by row; None where it must keep its fractals.

    Args:
        matrices: the matrices that ops multiply in the buffer.
        places: all arrays over the buffer.
    """
    kinds = set(matrices)
    found = kinds.pop() if len(kinds) == 1 else None
    if found is None or found.count < 2:
        return None
    moved = [None if place is None else place.in_rows(found) for place in places]
    return None if None in moved else [place for place in moved if place is not None]


BatchAxes = tuple[int, int, int, int, int]
"""The batch axes of an array: sizes of both, and their strides in bytes; and how many bytes further into memory the array of
the first block begins than the array of a block that runs alone."""
_LINE = 32
"""Alignment of buffers on chip in bytes."""


@dataclass
class OnChipFlow:
    """The data flow of a device function on chip: which blocks of a batch may share a buffer's contents follows from it.

    Attributes:
        parts: number of each part of a memory: the memory, its first byte, and one past its last.
        writes: for each op that writes on chip: the part, and its sources, GM operands by number and parts by number.
        foreign: memories of other cores that the function accesses.
        places: the arrays over on-chip memory: the part, and the array's place, None where it is not known.
        matrices: operands of products: the part, and its fractal layout, None where it must stay fractal.
    """

    parts: dict[tuple[str, int, int], int] = field(default_factory=dict)
    writes: list[tuple[int, set[int], set[int]]] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)
    places: list[tuple[int, ArrayPlace | None]] = field(default_factory=list)
    matrices: list[tuple[int, Panels | None]] = field(default_factory=list)

    def part(self, memory: str, low: int, high: int) -> int:
        """Returns the number of a part."""
        return self.parts.setdefault((memory, low, high), len(self.parts))

    def overlapping(self) -> list[int]:
        """Returns, for each part, the number of the part that represents all parts which overlap with it."""
        return [owner for owner, _, _ in self.stretches()]

    def stretches(self) -> list[tuple[int, int, int]]:
        """Returns, for each part, its representative as in ``overlapping``, and the first byte and one past the last byte of
        all parts that this represents."""
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
        """Returns the places of the arrays: row by row for matrices that only products and views access.

        Args:
            foreign: memories that other cores access.
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


class BatchLayout:
    """The layout of the arrays of a batch, as one core sees them: each array has two batch axes, rows of blocks and the blocks
    of a row. Where all blocks along an axis have the same data, the axis has size 1.

    Args:
        sizes: rows of blocks, and blocks of a row.
        places: strides in bytes along both axes, for each GM operand in the order of the records.
        gaps: bytes from block to block in each on-chip memory.
        foreign: on-chip memories that other cores access.
        blocks: block indices, row by row.

    Attributes:
        failed_block: the block in which ``each`` failed.
    """

    def __init__(self, sizes: tuple[int, int], places: tuple[tuple[int, int], ...], gaps: Mapping[str, int],
                 foreign: frozenset[str], blocks: Sequence[int]) -> None:
        self.sizes, self.places, self.gaps, self.blocks = sizes, places, gaps, blocks
        self.failed_block: int | None = None
        self._foreign = foreign
        self._fronts: dict[str, list[BatchAxes]] = {}
        self._laid: list[ArrayPlace | None] = []

    @property
    def count(self) -> int:
        """Number of blocks."""
        return self.sizes[0] * self.sizes[1]

    def in_gm(self, operand: int, *, written: bool) -> BatchAxes:
        """Returns the batch axes of a GM operand. A written operand keeps both axes: with stride 0, each block writes its own
        value to the same place."""
        far, near = self.places[operand]
        if written:
            return *self.sizes, far, near, 0
        return (self.sizes[0] if far else 1), (self.sizes[1] if near else 1), far, near, 0

    def on_chip(self, flow: OnChipFlow, memory: str) -> list[BatchAxes]:
        """Returns the batch axes of each part of the function's data flow, by number, as it lies in one memory."""
        found = self._fronts.get(memory)
        if found is None:
            found = self._fronts[memory] = self._found(flow, memory)
        return found

    def place(self, flow: OnChipFlow, number: int) -> tuple[int, ...]:
        """Returns the offset and strides of an on-chip array of the function's data flow, by number."""
        if not self._laid:
            self._laid = flow.laid(self._foreign)
        found = self._laid[number]
        assert found is not None
        return found.offset, *found.strides

    def _found(self, flow: OnChipFlow, memory: str) -> list[BatchAxes]:
        gap = self.gaps.get(memory, 0)
        rows, row = (self._apart(flow, axis) for axis in range(2))
        found: list[BatchAxes] = []
        for far, near, (_, low, high) in zip(rows, row, flow.stretches(), strict=True):
            step, shift = gap, 0
            if high <= gap and memory not in self._foreign:  # the copies of all blocks are contiguous, without gaps
                step, shift = -(-(high - low) // _LINE) * _LINE, low * (self.count - 1)
            sizes = (self.sizes[0] if far else 1), (self.sizes[1] if near else 1)
            found.append((*sizes, step * sizes[1], step, shift))
        return found

    def _apart(self, flow: OnChipFlow, axis: int) -> list[bool]:
        """Returns, for each part, whether blocks along an axis may have different data in it.

        Starts with memories that other cores access, and follows writes whose sources differ, until nothing changes.
        """
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
        """Calls ``work`` for each block with the block's parts of the arrays; sets ``failed_block`` on an error."""
        for row, place in np.ndindex(*np.broadcast_shapes(*(array.shape[:2] for array in arrays))):
            try:
                work(*[array[min(row, array.shape[0] - 1), min(place, array.shape[1] - 1), ...] for array in arrays])
            except Exception:
                self.failed_block = self.blocks[row * self.sizes[1] + place]
                raise
