"""Matrices on chip as rows: where nothing but views of them looks at it, fractals need not lie as they do on a card.

A matrix of fractals lies in panels, each with all rows and some columns of it: 32 bytes of a row in L1, 16 numbers in L0C.
NumPy and BLAS are faster with rows that lie whole. The bytes of such a buffer are the same as before, in another order, if all
arrays over it go to the next panel, to the next row, or along a piece of a row: only their places and strides are others then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Panels:
    """How a matrix of fractals lies.

    Attributes:
        start: its first byte.
        count: how many panels it has.
        stride: bytes from one to the next.
        run: bytes of a row in a panel.
    """

    start: int
    count: int
    stride: int
    run: int


@dataclass(frozen=True)
class ArrayPlace:
    """Where an array over a memory lies, as far as that is known before it runs.

    Attributes:
        offset: its first byte.
        sizes: the most elements that each axis has.
        strides: bytes from one to the next.
        element: bytes of an element.
    """

    offset: int
    sizes: tuple[float, ...]
    strides: tuple[int, ...]
    element: int

    def in_rows(self, panels: Panels) -> ArrayPlace | None:
        """Where it lies once the matrix has whole rows; None where it would be another array then."""
        row = panels.count * panels.run
        levels = ((panels.stride, panels.run), (panels.run, row), (1, 1))  # steps in fractals, and what they become
        ends: list[float] = []  # the last panel, row, and byte of its piece
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
    """The panels of a matrix of which an array shows all, ``[panels, rows, numbers of a row]``, in a buffer; None of others."""
    if len(place.sizes) != 3 or inf in place.sizes:
        return None
    stride, run, _ = place.strides
    if place.offset != low or run != place.element * place.sizes[2] or stride % run or (high - low) % stride:
        return None
    return Panels(low, (high - low) // stride, stride, run)


def in_rows(matrices: Iterable[Panels | None], places: Sequence[ArrayPlace | None]) -> list[ArrayPlace] | None:
    """The arrays over a buffer as they lie in a matrix with whole rows; None where they have to lie in fractals.

    Args:
        matrices: the matrices that ops multiply there.
        places: all arrays over it.
    """
    kinds = set(matrices)
    found = kinds.pop() if len(kinds) == 1 else None
    if found is None or found.count < 2:
        return None
    moved = [None if place is None else place.in_rows(found) for place in places]
    return None if None in moved else [place for place in moved if place is not None]


__all__ = ["ArrayPlace", "Panels", "in_rows", "panels_of"]
