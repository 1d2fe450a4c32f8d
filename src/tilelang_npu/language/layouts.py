"""Layouts of buffers in L1, for ``T.annotate_layout``."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Layout", "make_col_major_layout", "make_nz_layout", "make_swizzled_layout", "make_zn_layout"]


@dataclass(frozen=True, eq=False)
class Layout:
    """The order of a buffer's elements.

    Attributes:
        name: ``"zN"``: rows in each fractal, and columns of fractals; ``"nZ"``: its transpose; ``"column"``: columns, without
            fractals; ``"swizzled"``: the order of a GPU's shared memory.
        buffer: the buffer.
    """

    name: str
    buffer: object


def make_zn_layout(buf: object) -> Layout:
    """Fractals of 16 rows by 32 bytes, in columns of fractals: the order that a load into L1 produces."""
    return Layout("zN", buf)


def make_nz_layout(buf: object) -> Layout:
    """The transpose of :func:`make_zn_layout`, for operands that the Cube core reads transposed."""
    return Layout("nZ", buf)


def make_col_major_layout(buf: object) -> Layout:
    """Columns one after another, without fractals."""
    return Layout("column", buf)


def make_swizzled_layout(buffer: object) -> Layout:
    """The order that avoids bank conflicts in a GPU's shared memory, as ``tilelang.layout.make_swizzled_layout``; it has no
    effect.
    """
    return Layout("swizzled", buffer)
