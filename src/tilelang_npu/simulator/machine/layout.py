"""Fractal matrices on chip, stored row by row where no op can see the difference.

A fractal matrix consists of panels: all rows and some columns, 32 bytes of a row in L1 and 16 numbers in L0C. NumPy and BLAS
are faster on whole rows. A buffer can be stored row by row if every array over it steps from panel to panel, from row to row,
or
within a row of a panel: then only offsets and strides change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf


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


__all__ = ["ArrayPlace", "Panels", "in_rows", "panels_of"]
