"""Sizes of tiles in bytes, as numbers and as text for messages."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from tilelang_npu.analysis.buffers import root_of, space_of
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.target import name_of


def nbytes_of(value: SSAValue) -> int:
    """Returns the size of a tile in bytes; the tile's shape must be constant."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    each: int = dtype_of(kind.element_type).nbytes
    return each * prod(kind.get_shape())


def spaced(number: int) -> str:
    """Returns a number as text, with spaces between groups of three digits: ``98 304``."""
    return f"{number:,}".replace(",", " ")


def buffer_name(buffer: SSAValue) -> str:
    """Returns the name of a buffer or tensor for messages; ``a tensor`` if it has none."""
    owner = root_of(buffer).owner
    return owner.label.data if isinstance(owner, tile.AllocOp) else root_of(buffer).name_hint or "a tensor"


def sized(value: SSAValue) -> str:
    """Returns a buffer's name with its size and memory, for a message: ``k (16 384 bytes of L1)``.

    The memory is left out while it is not chosen yet.
    """
    space = space_of(value)
    memory = f" of {name_of(space)}" if name_of(space) != space else ""  # else it is open yet
    return f"{buffer_name(value)} ({spaced(nbytes_of(value))} bytes{memory})"


__all__ = ["buffer_name", "nbytes_of", "sized", "spaced"]
