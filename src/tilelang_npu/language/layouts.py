"""Layouts of L1 tiles by the names that scripts give them, for ``T.annotate_layout``."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Layout", "make_col_major_layout", "make_nz_layout", "make_swizzled_layout", "make_zn_layout"]


@dataclass(frozen=True, eq=False)
class Layout:
    """How a tile's fractals lie.

    Attributes:
        name: ``"zN"``: rows within a fractal, columns of fractals outside; ``"nZ"``: its transpose; ``"column"``: no fractals;
            ``"swizzled"``: as a GPU's shared memory has it.
        buffer: the tile.
    """

    name: str
    buffer: object


def make_zn_layout(buf: object) -> Layout:
    """Fractals of 16 rows by 32 bytes, one column of fractals after the other: what a load into L1 makes."""
    return Layout("zN", buf)


def make_nz_layout(buf: object) -> Layout:
    """The transpose of :func:`make_zn_layout`, for operands that the Cube reads transposed."""
    return Layout("nZ", buf)


def make_col_major_layout(buf: object) -> Layout:
    """Columns one behind the other, without fractals."""
    return Layout("column", buf)


def make_swizzled_layout(buffer: object) -> Layout:
    """What a GPU's shared memory has so that threads do not meet in its banks; there are no threads here. TileLang for a GPU
    has it as ``tilelang.layout.make_swizzled_layout``."""
    return Layout("swizzled", buffer)
