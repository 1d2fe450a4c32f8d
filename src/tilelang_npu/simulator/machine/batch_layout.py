"""The layout of the arrays of a batch; a batch is a group of blocks that one call of the generated code computes at once.

The blocks of a batch run the same ops on the same on-chip offsets, and their offsets in GM are evenly spaced. Every array of a
batch has two leading axes, the batch axes, which enumerate the blocks.

In addition, the simulator can store a fractal matrix row by row if no op depends on the fractal layout, because NumPy and BLAS
are faster on whole rows. A fractal matrix consists of panels. A panel has all rows and a few columns: 32 bytes of each row in
L1, 16 numbers of each row in L0C. A buffer can be stored row by row if every axis of every array over it steps from panel to
panel, from row to row, or within a row of a panel: then only the offsets and strides of the arrays change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.target.chip_data import Space


@dataclass(frozen=True)
class Panels:
    """The fractal layout of a matrix as panels.

    Attributes:
        start: the byte offset of the matrix in its memory.
        count: the number of panels.
        stride: the distance in bytes from the start of one panel to the start of the next one.
        run: the number of bytes of one row within a panel.
    """

    start: int
    count: int
    stride: int
    run: int


@dataclass(frozen=True)
class ArrayPlace:
    """The offset and strides of an array over a memory, which are constants.

    Attributes:
        offset: the byte offset of the first element in the memory.
        sizes: an upper bound of the number of elements along each axis; infinity where none is known.
        strides: the distance in bytes between neighbouring elements along each axis.
        element: the number of bytes of an element.
    """

    offset: int
    sizes: tuple[float, ...]
    strides: tuple[int, ...]
    element: int

    def in_rows(self, panels: Panels) -> ArrayPlace | None:
        """Returns the offset and strides of the array after its matrix is stored row by row; None if no strides describe it.

        Args:
            panels: the fractal layout of the matrix.
        """
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
    """Returns the fractal layout of a matrix, given an array ``[panels, rows, elements of a row of a panel]`` over the buffer.

    Args:
        place: the offset and strides of the array.
        low, high: the first byte of the buffer in its memory, and the byte after its last one.

    Returns:
        the layout; None if the array does not cover the whole buffer, or its rows are not contiguous.
    """
    if len(place.sizes) != 3 or inf in place.sizes:
        return None
    stride, run, _ = place.strides
    if place.offset != low or run != place.element * place.sizes[2] or stride % run or (high - low) % stride:
        return None
    return Panels(low, (high - low) // stride, stride, run)


def in_rows(matrices: Iterable[Panels | None], places: Sequence[ArrayPlace | None]) -> list[ArrayPlace] | None:
    """Returns the offset and strides of all arrays over a buffer after the matrix in the buffer is stored row by row.

    Args:
        matrices: for each matrix product that reads or writes the buffer, the fractal layout of its operand in the buffer; None
            if the product needs fractals.
        places: all arrays over the buffer; None for an array whose offset and strides are not constants.

    Returns:
        the new offsets and strides in the order of ``places``; None if the buffer must stay fractal.
    """
    kinds = set(matrices)
    found = kinds.pop() if len(kinds) == 1 else None
    if found is None or found.count < 2:
        return None
    moved = [None if place is None else place.in_rows(found) for place in places]
    return None if None in moved else [place for place in moved if place is not None]


BatchAxes = tuple[int, int, int, int, int]
"""The batch axes of an array: the sizes of both axes, their strides in bytes, and the bytes to add to the array's offset.

With these bytes added, the offset of the array of a block that runs alone becomes that of the first block of the batch."""
_LINE = 32
"""Alignment of buffers on chip in bytes."""


@dataclass
class OnChipFlow:
    """The data flow of a device function in on-chip memory. It decides which buffers are equal in all blocks of a batch.

    A *part* is a contiguous range of bytes of one memory that some view of the function covers. Parts have numbers, and so have
    the GM operands of the function's records.

    Attributes:
        parts: the number of each part. The key is the memory, the offset of the part's first byte, and the offset after its
            last byte.
        writes: for each write on chip, the number of the written part, and the numbers of the GM operands and of the parts that
            the value comes from.
        foreign: the on-chip memories of other cores that the function accesses.
        places: for each array over an on-chip memory, the number of its part, and its offset and strides; None where they are
            not constants.
        matrices: for each operand of a matrix product, the number of its part, and its fractal layout; None where the part must
            stay fractal.
    """

    parts: dict[tuple[str, int, int], int] = field(default_factory=dict)
    writes: list[tuple[int, set[int], set[int]]] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)
    places: list[tuple[int, ArrayPlace | None]] = field(default_factory=list)
    matrices: list[tuple[int, Panels | None]] = field(default_factory=list)

    def part(self, memory: Space, low: int, high: int) -> int:
        """Returns the number of the part of ``memory`` from byte ``low`` to before byte ``high``; a new part gets a number."""
        return self.parts.setdefault((memory, low, high), len(self.parts))

    def overlapping(self) -> list[int]:
        """Returns, for each part by its number, the number of the part that represents its group of overlapping parts.

        Parts that overlap directly, or through other parts, form one group, and one part of the group represents the group.
        """
        return [owner for owner, _, _ in self.stretches()]

    def stretches(self) -> list[tuple[int, int, int]]:
        """Returns, for each part by its number, the group of overlapping parts that it belongs to.

        Returns:
            the number of the part that represents the group, as in ``overlapping``; the first byte of all parts of the group;
            and the byte after their last one.
        """
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
        """Returns the offset and strides of each array in ``places``, after all matrices for which this is possible are stored
        row by row.

        Args:
            foreign: the on-chip memories that other cores access; matrices in them stay fractal.
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
    """The layout of the arrays of a batch, as one core sees them.

    The blocks of a batch form a matrix. Each array has two batch axes: the first enumerates the rows of this matrix, the second
    the blocks of a row. If an array has the same data in all blocks along an axis, the axis has size 1.

    Args:
        sizes: the number of rows of blocks, and the number of blocks of a row.
        places: for each GM operand in the order of the records, the distance in bytes between the operands of neighbouring
            blocks, along the first and along the second batch axis.
        gaps: for each on-chip memory, the distance in bytes from the memory of one block to the memory of the next block.
        foreign: the on-chip memories that other cores access.
        blocks: the block indices, row by row.

    Attributes:
        failed_block: the index of the block in which a call by ``each`` raised an error; None if none did.
    """

    def __init__(self, sizes: tuple[int, int], places: tuple[tuple[int, int], ...], gaps: Mapping[Space, int],
                 foreign: frozenset[str], blocks: Sequence[int]) -> None:
        self.sizes, self.places, self.gaps, self.blocks = sizes, places, gaps, blocks
        self.failed_block: int | None = None
        self._foreign = foreign
        self._fronts: dict[str, list[BatchAxes]] = {}
        self._laid: list[ArrayPlace | None] = []

    @property
    def count(self) -> int:
        """The number of blocks of the batch."""
        return self.sizes[0] * self.sizes[1]

    def in_gm(self, operand: int, *, written: bool) -> BatchAxes:
        """Returns the batch axes of a GM operand.

        Args:
            operand: the number of the operand.
            written: whether the op writes the operand. If it does, both axes have full size even if their stride is 0, in which
                case all blocks write to the same bytes.
        """
        far, near = self.places[operand]
        if written:
            return *self.sizes, far, near, 0
        return (self.sizes[0] if far else 1), (self.sizes[1] if near else 1), far, near, 0

    def on_chip(self, flow: OnChipFlow, memory: Space) -> list[BatchAxes]:
        """Returns the batch axes of each part of the function's data flow, by the number of the part.

        Args:
            flow: the data flow.
            memory: the on-chip memory; the axes are valid for the parts that lie in it.
        """
        found = self._fronts.get(memory)
        if found is None:
            found = self._fronts[memory] = self._found(flow, memory)
        return found

    def place(self, flow: OnChipFlow, number: int) -> tuple[int, ...]:
        """Returns the byte offset and the byte strides of an on-chip array, by its position in ``flow.places``."""
        if not self._laid:
            self._laid = flow.laid(self._foreign)
        found = self._laid[number]
        assert found is not None
        return found.offset, *found.strides

    def _found(self, flow: OnChipFlow, memory: Space) -> list[BatchAxes]:
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
        """Returns, for each part, whether the part's data possibly differ between blocks along a batch axis.

        The data differ in memories that other cores access, and in parts that are written with data from GM operands or parts
        that differ between blocks.
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
        """Calls ``work`` once per block of the batch, with the views of the arrays that belong to the block.

        Args:
            work: the function.
            arrays: arrays with two batch axes.

        Raises:
            Exception: the error that ``work`` raises; ``failed_block`` is then the block.
        """
        for row, place in np.ndindex(*np.broadcast_shapes(*(array.shape[:2] for array in arrays))):
            try:
                work(*[array[min(row, array.shape[0] - 1), min(place, array.shape[1] - 1), ...] for array in arrays])
            except Exception:
                self.failed_block = self.blocks[row * self.sizes[1] + place]
                raise
